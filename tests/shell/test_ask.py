"""`clawbridge ask`: streams the reply, says by its exit code how the task ended, and leaves nothing open."""

import asyncio
import base64
import json
import os
import re
import signal

import pytest

from lab.agents import Echo, TaskPeer, gone, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.pictures import PIXEL
from lab.receivers import Handler, serving_http
from lab.waiting import eventually
from tests.shell.conftest import WITHIN_S, Direct, Shell, terminal


async def test_a_reply_is_printed_while_it_comes(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        steps = 'say one,  | note reading | hold | say two | text a1 three | data a2 {"b": 4} | raw a3 hello'
        command = shell.start("ask", f"@{agent.handle}", steps)

        async def printed() -> bool:
            return command.output == "one, " and "reading" in command.errors

        await eventually(printed, "the first piece is printed", within_s=30)
        agent.release.set()
        assert await command.end() == 0
        assert command.output == 'one, two\nthree\n{\n  "b": 4\n}\n'
        notes = r"reading\nfile a3.txt \(text/plain\), 5 bytes: clawbridge artifacts task-\S+ --save DIR\n"
        assert re.fullmatch(notes, command.errors)


async def test_the_exit_code_says_how_the_task_ended(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        failed, rejected, asked, login = [
            await shell.run("ask", agent.handle, question)
            for question in ("fail no luck", "reject not that", "ask which day?", "login your account?")
        ]
        assert (failed.code, failed.errors.splitlines()[0]) == (1, "clawbridge: no luck")
        assert (rejected.code, rejected.errors.splitlines()[0]) == (3, "clawbridge: not that")
        assert asked.code == 4
        assert "the agent asks for input: which day?" in asked.errors
        assert (login.code, login.output) == (5, "")
        task_id = re.findall(r"answer with: clawbridge reply (\S+) ANSWER\n", asked.errors)[0]
        answered = await shell.run("ask", agent.handle, "Tuesday", "--task", task_id)
        assert (answered.code, answered.output) == (0, "you said: Tuesday\n")
    await gone(embedded_hub, agent)
    offline = await shell.run("ask", agent.handle, "hello")
    assert (offline.code, offline.errors.splitlines()[0]) == (1, "clawbridge: agent channel offline")


async def test_files_become_parts_and_wrong_ones_are_refused_before_a_question_is_sent(
    embedded_hub: HubProcess, shell: Shell
) -> None:
    names = ("notes.md", "plan.json", "broken.json", "large.txt")
    notes, plan, broken, large = (shell.folder / name for name in names)
    notes.write_text("# Notes")
    plan.write_text('{"steps": [1, 2]}')
    broken.write_text('{"a": NaN}')
    large.write_text("x" * 2**20)
    async with online(embedded_hub, Echo) as agent:
        for wrong, why in ((broken, "no JSON"), (large, "at most")):
            refused = await shell.run("ask", agent.handle, "right?", "--file", str(wrong))
            assert (refused.code, why in refused.errors) == (2, True), refused.errors
        assert not agent.prompts
        asked = await shell.run("ask", agent.handle, "right?", "--file", str(notes), "--file", str(plan), "--json")
        task = json.loads(asked.output)["task"]
        assert (asked.code, task["status"]["state"]) == (0, "TASK_STATE_COMPLETED")
        assert task["history"][0]["parts"] == [
            {"text": "right?"},
            {"text": "# Notes", "filename": "notes.md"},
            {"data": {"steps": [1, 2]}, "mediaType": "application/json", "filename": "plan.json"},
        ]


async def test_an_image_is_sent_to_agents_whose_card_lists_it(embedded_hub: HubProcess, shell: Shell) -> None:
    image = shell.folder / "a.png"
    image.write_bytes(PIXEL)
    file = ("--file", str(image))
    async with online(embedded_hub, Echo) as agent:
        refused = await shell.run("ask", agent.handle, "what?", *file)
        why = f"@{agent.handle} takes no image/png, by its card: it takes text in UTF-8 and JSON alone"
        assert (refused.code, refused.errors) == (2, f"clawbridge: --file a.png: {why}\n")
        assert not agent.prompts
    card = {
        "defaultInputModes": ["text/plain", "application/pdf"],
        "skills": [{"id": "see", "name": "See", "description": "x", "tags": ["x"], "inputModes": ["image/*"]}],
    }
    async with online(embedded_hub, TaskPeer, agent=card, features=["parts"]) as agent:
        asked = await shell.run("ask", agent.handle, "ask which part?", *file)
        assert asked.code == 4, asked.errors
        [task] = re.findall(r"reply (\S+) ANSWER", asked.errors)
        assert (await shell.run("reply", task, *file)).code == 0
        encoded = base64.b64encode(image.read_bytes()).decode()
        sent = {"raw": encoded, "filename": "a.png", "mediaType": "image/png"}
        assert [prompt["parts"][-1] for prompt in agent.prompts] == [sent, sent]
        other = image.rename(shell.folder / "a.ogg")
        refused = await shell.run("ask", agent.handle, "what?", "--file", str(other))
        assert "takes no audio/ogg, by its card: it takes text/plain, application/pdf, image/*" in refused.errors
        assert (refused.code, len(agent.prompts)) == (2, 2)


async def test_a_file_larger_than_a_request_is_uploaded_first(embedded_hub: HubProcess, shell: Shell) -> None:
    paper, picture = shell.folder / "plan.pdf", shell.folder / "a.png"
    paper.write_bytes(b"%PDF-1.4\n\xff" + bytes(2_000_000))
    picture.write_bytes(PIXEL)
    files = ("--file", str(paper), "--file", str(picture))
    card = {"defaultInputModes": ["text/plain", "application/pdf", "image/*"]}
    async with online(embedded_hub, TaskPeer, agent=card) as agent:
        asked = await shell.run("ask", agent.handle, "say seen", *files)
        assert (asked.code, asked.output[:5]) == (0, "seen\n"), asked.errors
        assert "uploading plan.pdf, 2000010 bytes" in asked.errors
        _, sent, small = agent.prompts[0]["parts"]
        assert "/api/channel/files/" in sent.pop("url")
        assert sent == {"filename": "plan.pdf", "mediaType": "application/pdf"}
        assert "raw" in small
        paper.write_bytes(b"%PDF-1.4\n\xff" + bytes(10 * 1024 * 1024))
        refused = await shell.run("ask", agent.handle, "say seen", *files)
        assert (refused.code, "over 10485760 bytes" in refused.errors) == (2, True)
        paper.write_bytes(b"\xff no paper" + bytes(2_000_000))
        lies = await shell.run("ask", agent.handle, "say seen", *files)
        assert (lies.code, "declared as application/pdf" in lies.errors) == (8, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_cancels_the_task_on_the_hub(
    number: signal.Signals, embedded_hub: HubProcess, shell: Shell
) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        command = shell.start("ask", agent.handle, "wait | reply stopped")
        await agent.heard("prompt", within_s=WITHIN_S)
        command.process.send_signal(number)
        assert await command.end() == 128 + number
        canceled = command.errors.removeprefix("clawbridge: canceled ").strip()
        headers = bearer(shell.env["CLAWBRIDGE_TOKEN"]) | {"A2A-Version": "1.0"}
        async with web(embedded_hub.url) as client:
            task = await client.get(f"/api/a2a/v1/agents/{agent.handle}/tasks/{canceled}", headers=headers)
        assert task.json()["status"]["state"] == "TASK_STATE_CANCELED"


async def test_an_agent_that_asks_back_is_answered_on_the_terminal(embedded_hub: HubProcess, shell: Shell) -> None:
    with terminal() as (ours, its):
        os.write(ours, b"Tuesday\n")
        async with online(embedded_hub, TaskPeer) as agent:
            with shell.typing("ask", agent.handle, "ask which \x1b[2Jday?", stdin=its) as process:
                output, errors = await asyncio.to_thread(process.communicate, timeout=WITHIN_S)
            assert (process.returncode, output) == (0, "you said: Tuesday\n")
            assert errors == "which \N{REPLACEMENT CHARACTER}[2Jday?\n> "


async def test_a_question_is_read_from_standard_input(embedded_hub: HubProcess, shell: Shell) -> None:
    ours, its = os.pipe()
    os.write(its, "grüße\n".encode())
    os.close(its)
    try:
        async with online(embedded_hub, Echo) as agent:
            with shell.typing("ask", agent.handle, stdin=ours) as process:
                output, _ = await asyncio.to_thread(process.communicate, timeout=WITHIN_S)
            assert (process.returncode, output) == (0, "echo: grüße\n")
    finally:
        os.close(ours)


async def test_what_is_wrong_with_hub_and_token_is_said_and_no_token_is_shown(
    embedded_hub: HubProcess, shell: Shell, subtests: pytest.Subtests
) -> None:
    channel, secret = embedded_hub.mint("owner", "channel"), "cw_app_0123456789abcdef0123456789abcdef"
    file = shell.folder / "token"
    file.write_text(f"{shell.env['CLAWBRIDGE_TOKEN']}\n")
    async with online(embedded_hub, Echo) as agent:
        ask = ("ask", agent.handle, "hi")
        commands = [
            (7, "run `clawbridge login --hub", await shell.run(*ask, CLAWBRIDGE_TOKEN="")),
            (7, "refuses the token", await shell.run(*ask, "--token", secret)),
            (7, "connects agents and asks none", await shell.run(*ask, CLAWBRIDGE_TOKEN=channel)),
            (8, "`clawbridge agents` lists", await shell.run("ask", "owner/absent", "hi")),
            (2, "is no handle", await shell.run("ask", "absent", "hi")),
            (2, "want an address", await shell.run(*ask, "--hub", "nowhere")),
            (9, "no answer from", await shell.run(*ask, "--hub", "http://127.0.0.1:1")),
        ]
        for code, text, command in commands:
            with subtests.test(code=code, text=text):
                assert (command.code, text in command.errors) == (code, True), command.errors
                assert channel not in command.errors
                assert secret not in command.errors
        assert "can read --token" in commands[1][2].errors
        from_file = await shell.run(*ask, "--token-file", str(file), CLAWBRIDGE_TOKEN=secret)
        assert (from_file.code, from_file.output, from_file.errors) == (0, "echo: hi\n", "")


async def test_an_answer_without_a_task_is_printed(embedded_hub: HubProcess, shell: Shell) -> None:
    async with online(embedded_hub, Direct, features=["direct_message"]) as agent:
        plain = await shell.run("ask", agent.handle, "hi")
        assert (plain.code, plain.output) == (0, "at once: hi\n")
        as_json = await shell.run("ask", agent.handle, "hi", "--json")
        assert json.loads(as_json.output)["message"]["parts"][0]["text"] == "at once: hi"


class NoHub(Handler):
    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.startswith("/site/"):
            self.answer(200, b"<html>", Content_Type="text/html")
        else:
            self.answer(302, Location="https://elsewhere.example/")

    do_POST = do_GET


async def test_a_server_that_is_no_hub_gets_no_traceback(shell: Shell) -> None:
    with serving_http(NoHub) as port:
        url = f"http://127.0.0.1:{port}"
        for command in (("ask", "a/b", "hi"), ("agents",), ("tasks",), ("login",)):
            refused = await shell.run(*command, "--hub", f"{url}/site")
            assert (refused.code, "no Clawbridge hub" in refused.errors) == (9, True), refused.errors
        moved = await shell.run("agents", "--hub", url)
        assert (moved.code, "redirects to https://elsewhere.example/" in moved.errors) == (9, True), moved.errors
