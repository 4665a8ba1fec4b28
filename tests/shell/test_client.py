"""`clawbridge.Client` and `clawbridge.AsyncClient` against a hub and its agents."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from clawbridge import (
    AsyncClient,
    BadArguments,
    Client,
    Message,
    Part,
    Refused,
    Task,
    TaskNotFound,
    Unauthorized,
    Unreachable,
)
from lab import ROOT
from lab.agents import Echo, TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.processes import free_port
from lab.receivers import Handler, serving_http
from tests.shell.conftest import Direct


@pytest.fixture
def hub(embedded_hub: HubProcess) -> Iterator[Client]:
    """A client with a token of its own user."""
    with Client(embedded_hub.url, embedded_hub.mint("client-user", "session")) as client:
        yield client


@pytest.fixture
def other(embedded_hub: HubProcess) -> AsyncClient:
    """The same for asyncio."""
    return AsyncClient(embedded_hub.url, embedded_hub.mint("other-user", "session"))


async def test_it_asks_answers_and_reads_what_was_asked(embedded_hub: HubProcess, hub: Client) -> None:
    async with online(embedded_hub, TaskPeer) as agent:
        handle = f"@{agent.handle}"

        def use() -> None:
            steps = 'say one, | say two | data a2 {"b": 4} | raw a3 hello'
            done = hub.ask(handle, [Part(text=steps)])
            assert isinstance(done, Task)
            assert (done.status.name, done.text) == ("COMPLETED", "one,two")
            files = {file.name: file.content for file in hub.artifacts(done.id)}
            assert files["a3.txt"] == b"hello"
            waiting = hub.ask(handle, "ask which day?")
            assert isinstance(waiting, Task)
            assert (waiting.status.name, waiting.text) == ("INPUT_REQUIRED", "which day?")
            assert hub.reply(waiting.id, "Tuesday").text == "you said: Tuesday"
            states = [(one.task_id, one.state) for one in hub.tasks(agent=handle).items]
            assert states == [(waiting.id, "completed"), (waiting.id, "completed"), (done.id, "completed")]
            assert hub.task(done.id, agent=handle) == done
            assert [one.handle for one in hub.agents(agent.handle).items] == [agent.handle]

        await asyncio.to_thread(use)


async def test_a_stream_has_each_piece_once_and_can_be_canceled(embedded_hub: HubProcess, hub: Client) -> None:
    async with online(embedded_hub, TaskPeer) as agent:

        def use() -> tuple[list[str], list[str]]:
            pieces, states = [], []
            for update in hub.stream(agent.handle, "say one, | note reading | say two"):
                pieces += [update.text] if update.text else []
                states += [f"{update.status.name} {update.status.text}".strip()] if update.status else []
            return pieces, states

        pieces, states = await asyncio.to_thread(use)
        assert "".join(pieces) == "one,two"
        assert (states[-1], "WORKING reading" in states) == ("COMPLETED", True)

        def cancel() -> str:
            stream = hub.stream(agent.handle, "say begun | hold")
            task_id = next(stream).task_id
            stream.close()
            return hub.cancel(task_id).status.name

        assert await asyncio.to_thread(cancel) == "CANCELED"


async def test_asyncio_has_the_same_methods(embedded_hub: HubProcess, other: AsyncClient) -> None:
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public == {name for name in vars(AsyncClient) if not name.startswith("_")}
    async with online(embedded_hub, TaskPeer) as agent, other as hub:
        pieces = [update.text async for update in hub.stream(agent.handle, "say one, | say two")]
        assert "".join(pieces) == "one,two"
        waiting = await hub.ask(agent.handle, "ask which day?")
        assert isinstance(waiting, Task)
        assert (await hub.reply(waiting.id, "Tuesday")).text == "you said: Tuesday"
        assert [one.state for one in (await hub.tasks(state="completed")).items] == ["completed"] * 3
        assert (await hub.task(waiting.id)).status.has_ended
        assert [file.content for file in await hub.artifacts(waiting.id)] == [b"you said: Tuesday"]
        assert (await hub.agents(agent.handle)).total == 1
        with pytest.raises(Refused):
            await hub.cancel(waiting.id)


async def test_an_agent_without_tasks_answers_with_a_message(embedded_hub: HubProcess, other: AsyncClient) -> None:
    async with online(embedded_hub, Direct, features=["direct_message"]) as agent, other as hub:
        answer = await hub.ask(agent.handle, "hello")
        assert isinstance(answer, Message)
        assert answer.text == "at once: hello"


def test_errors_are_of_their_own_classes(embedded_hub: HubProcess, hub: Client) -> None:
    with pytest.raises(BadArguments, match="no handle"):
        hub.ask("echo", "hello")
    with pytest.raises(Refused, match="no such agent") as refused:
        hub.ask("@ann/absent", "hello")
    assert refused.value.status == 404
    with pytest.raises(TaskNotFound):
        hub.task("task-1")
    with pytest.raises(BadArguments, match="characters"):
        Client(embedded_hub.url, "cw_app_…")
    with Client(embedded_hub.url, "cw_sess_wrong") as stranger, pytest.raises(Unauthorized):
        stranger.agents()
    with Client(f"http://127.0.0.1:{free_port()}") as absent, pytest.raises(Unreachable):
        absent.ask("@demo/echo", "hello")


async def test_the_programs_of_the_howto_work_as_printed(embedded_hub: HubProcess) -> None:
    page = (ROOT / "docs" / "howto" / "ask-from-python.md").read_text()
    programs = [one for one in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "from clawbridge" in one]
    token = embedded_hub.mint("howto-user", "app")
    async with online(embedded_hub, Echo) as agent:
        printed = []
        for program in programs:
            code = re.sub(r"(?m)^HUB, TOKEN = .*$", f"HUB, TOKEN = {(embedded_hub.url, token)!r}", program)
            code = code.replace("demo/echo", agent.handle)
            command = [sys.executable, "-c", code]
            done = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            printed.append(done.stdout)
    expected = (
        r"echo: hello\nCOMPLETED echo: and again\ntask-\w+ completed and again\ntask-\w+ completed hello\n"
        r"reply-1.txt text/plain 15\nthe task cannot be canceled: it is completed\n"
    )
    assert re.fullmatch(expected, printed[0]), printed[0]
    assert printed[1] == "['echo: one', 'echo: two']\n"


EVENTS = [
    {"task": {"id": "task-1", "status": {"state": "TASK_STATE_WORKING"}}},
    {"artifactUpdate": {"taskId": "task-1", "artifact": {"artifactId": "a", "parts": [{"text": "Hel"}]}}},
]
WHOLE = {"id": "task-1", "status": {"state": "TASK_STATE_COMPLETED"}}
WHOLE |= {"artifacts": [{"artifactId": "a", "parts": [{"text": "Hello"}]}]}


async def test_a_hub_that_restarts_is_asked_once_and_its_snapshot_adds_what_was_missed() -> None:
    keys: list[str] = []
    after: list[str | None] = []

    class Restarting(Handler):
        def do_POST(self) -> None:
            keys.append(self.headers["Idempotency-Key"])
            after.append(self.headers["Last-Event-ID"])
            self.rfile.read(int(self.headers["Content-Length"]))
            match len(keys):
                case 1:  # read, and broken before an answer
                    self.close_connection = True
                case 2:
                    self.answer(200, stream_of(*EVENTS), Content_Type="text/event-stream")
                case 3:
                    self.answer(503, b"{}")
                case _:
                    self.answer(200, stream_of({"task": WHOLE}), Content_Type="text/event-stream")

    with serving_http(Restarting) as port, Client(f"http://127.0.0.1:{port}") as client:
        updates = await asyncio.to_thread(list, client.stream("@demo/echo", "hello"))
    assert "".join(update.text for update in updates) == "Hello"
    assert (len(keys), len(set(keys))) == (4, 1)
    assert after == [None, None, "1", "1"]


def stream_of(*events: Json) -> bytes:
    return "".join(f"id: {number}\ndata: {json.dumps(event)}\n\n" for number, event in enumerate(events)).encode()
