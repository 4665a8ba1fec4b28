"""`clawbridge trace`: the steps of an ask in a shell, its curl, and a report of a problem."""

import json

from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.shell.conftest import Shell


async def test_an_ask_is_shown_step_by_step(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, Echo) as agent:
        asked = await shell.run("ask", agent.handle, "hello trace", "--json")
        task_id = json.loads(asked.output)["task"]["id"]
        shown = await shell.run("trace", task_id)
        assert shown.code == 0, shown.errors
        for step in ("AFTER", "Admitted", "Delivered to the agent", "End, stored: answered"):
            assert step in shown.output
        assert f"@{agent.handle}  completed" in shown.output
        assert "/questions/" in shown.errors
        found = json.loads((await shell.run("trace", task_id, "--json")).output)
        assert (found["question"], found["taskId"]) == ("hello trace", task_id)
        curl = await shell.run("trace", found["id"], "--curl")
        assert curl.output.startswith("curl http")
        reported = await shell.run("trace", task_id, "--report", "Too slow", "--json")
        assert json.loads(reported.output)["problem"]["text"] == "Too slow"
        again = await shell.run("trace", task_id, "--report", "Too slow")
        assert (again.code, "has a report already" in again.errors) == (8, True)


async def test_a_failed_ask_names_the_command(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        failed = await shell.run("ask", agent.handle, "fail")
        command = failed.errors.partition("what happened: clawbridge ")[2].split()
        assert command[0] == "trace"
        assert "The agent said that it failed." in (await shell.run(*command)).output


async def test_absent_asks_and_texts_that_are_no_id_are_errors(embedded_hub: HubProcess, shell: Shell) -> None:
    absent = await shell.run("trace", "task-of-another")
    assert (absent.code, "no such question" in absent.errors) == (8, True)
    assert (await shell.run("trace", "no/id")).code == 2
    assert (await shell.run("trace", "task-1", "--curl", "--json")).code == 2
