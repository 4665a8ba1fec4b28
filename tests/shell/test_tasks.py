"""`clawbridge tasks` tells how tasks stand, and `clawbridge reply` answers those that wait."""

import asyncio
import json
import os
import re
import signal

from lab.agents import TaskPeer, gone, online
from lab.hub_process import HubProcess
from tests.shell.conftest import WITHIN_S, Direct, Shell, terminal

ENDS = {
    "completed": "reply done",
    "failed": "fail no luck",
    "rejected": "reject not that",
    "input_required": "ask which day?",
    "auth_required": "login your account?",
}


async def states(shell: Shell, *arguments: str) -> list[tuple[str, str, str]]:
    """State, task and question of each line that `clawbridge tasks` prints."""
    listed = await shell.run("tasks", *arguments)
    assert listed.code == 0, listed.errors
    lines = [re.split(r"  +", line) for line in listed.output.splitlines()[1:]]
    return [(state, task, question) for _, state, _, task, question in lines]


async def test_states_are_told_apart_and_filtered(embedded_hub: HubProcess, shell: Shell) -> None:
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint("states", "session")
    async with online(embedded_hub, TaskPeer) as agent:
        for steps in ENDS.values():
            await shell.run("ask", agent.handle, steps)
        command = shell.start("ask", agent.handle, "wait | reply stopped")
        await agent.heard("prompt", within_s=WITHIN_S, count=len(ENDS) + 1)
        assert [one[0] for one in await states(shell, "--state", "open")] == ["open"]
        command.process.send_signal(signal.SIGINT)
        assert await command.end() == 130
    await gone(embedded_hub, agent)
    await shell.run("ask", agent.handle, "hello")
    expected = {**ENDS, "canceled": "wait | reply stopped", "denied": "hello"}
    assert {state: text for state, _, text in await states(shell)} == expected
    for state, question in expected.items():
        assert [(one[0], one[2]) for one in await states(shell, "--state", state)] == [(state, question)]
    wrong = await shell.run("tasks", "--state", "lost")
    assert (wrong.code, "'auth_required'" in wrong.errors) == (2, True)


async def test_a_reply_answers_a_task_that_waits_and_no_other(embedded_hub: HubProcess, shell: Shell) -> None:
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint("replies", "session")
    async with online(embedded_hub, TaskPeer) as agent:
        await shell.run("ask", agent.handle, "ask which day?")
        listed = await shell.run("tasks")
        task = re.findall(r"clawbridge reply (\S+) ANSWER\n", listed.errors)[0]
        again = await shell.run("reply", task, "ask which hour?")
        assert (again.code, f"clawbridge reply {task}" in again.errors) == (4, True)
        assert [one[0] for one in await states(shell)] == ["input_required", "completed"]
        replied = await shell.run("reply", task, "noon", "--json")
        ended = json.loads(replied.output)["task"]
        assert (replied.code, ended["id"], ended["status"]["state"]) == (0, task, "TASK_STATE_COMPLETED")
        assert len(agent.prompts) == 3
        late = await shell.run("reply", task, "late")
        assert (late.code, late.errors) == (
            8,
            f"clawbridge: {task} does not wait for an answer: it is completed\n",
        )
        absent = await shell.run("reply", "task-absent", "hi")
        assert (absent.code, "`clawbridge tasks` lists them" in absent.errors) == (8, True)
        assert len(agent.prompts) == 3


async def test_a_task_that_is_no_longer_kept_is_named(embedded_hub: HubProcess, shell: Shell) -> None:
    shell.env["CLAWBRIDGE_TOKEN"] = embedded_hub.mint("late", "session")
    async with online(embedded_hub, Direct, features=["direct_message"]) as agent:
        await shell.run("ask", agent.handle, "hi")
        [(_, task, _)] = await states(shell)
        for command in (("artifacts", task), ("reply", task, "hi")):
            refused = await shell.run(*command)
            expected = (8, f"clawbridge: the hub no longer keeps {task}: ask again\n")
            assert (refused.code, refused.errors) == expected


async def test_without_a_text_the_terminal_is_asked(embedded_hub: HubProcess, shell: Shell) -> None:
    with terminal() as (ours, its):
        async with online(embedded_hub, TaskPeer) as agent:
            asked = await shell.run("ask", agent.handle, "ask which day?", "--json")
            os.write(ours, b"Tuesday\n")
            with shell.typing("reply", json.loads(asked.output)["task"]["id"], stdin=its) as process:
                output, errors = await asyncio.to_thread(process.communicate, timeout=WITHIN_S)
            assert (process.returncode, output, errors) == (0, "you said: Tuesday\n", "which day?\n> ")
