"""The Agent Protocol: tasks, steps and artifacts at `/ap/v1/agent`."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from django.utils import timezone

from accounts.models import User
from accounts.quotas import QuotaExceeded
from gateway import jobs
from gateway.models import ProtocolStep, ProtocolTask
from gateway.service import protocol_tasks
from gateway.service.protocol_shapes import NewFile, PageOf, RequestBody, read_relative_path
from gateway.service.protocol_tasks import BegunStep
from kit.asgi import RequestRefused
from lab.agents import Drop, Echo, Held, TaskPeer, gone, online
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, session_id, team
from tests.gateway.lowered import lower

TASKS = "/ap/v1/agent/tasks"


async def make_task(client: httpx.AsyncClient, agent: str, **more: Any) -> Json:
    made = await client.post(TASKS, json={"additional_input": {"agent": agent}} | more)
    assert made.status_code == 200, made.text
    task: Json = made.json()
    return task


async def step(client: httpx.AsyncClient, task: Json, text: str | None = None) -> httpx.Response:
    body = {} if text is None else {"input": text}
    return await client.post(f"{TASKS}/{task['task_id']}/steps", json=body)


async def test_a_task_asks_a_seat_step_by_step(hub: HubProcess) -> None:
    headers = bearer(hub.mint("protocol", "session"))
    async with team(hub, "protocol", main=EchoSeat) as (seat,), web(hub.urls[-1], headers=headers) as client:
        made = await client.post(TASKS, json={"input": "first"})
        task = made.json()
        assert (task["input"], task["additional_input"], task["artifacts"]) == ("first", None, [])
        first = (await step(client, task)).json()
        assert (first["task_id"], first["status"], first["name"]) == (task["task_id"], "completed", "main")
        assert (first["input"], first["output"], first["is_last"]) == ("first", "echo: first", True)
        assert (await step(client, task)).status_code == 422
        second = (await step(client, task, "second")).json()
        assert second["output"] == "echo: second"
        asked = [one["sessionId"] for one in seat.of("message")]
        assert (len(asked), len(set(asked))) == (2, 1)  # one conversation
        listed = (await client.get(f"{TASKS}/{task['task_id']}/steps?page_size=1&current_page=2")).json()
        assert listed["steps"] == [second]
        assert listed["pagination"] == {"total_items": 2, "total_pages": 2, "current_page": 2, "page_size": 1}
        assert (await client.get(f"{TASKS}/{task['task_id']}/steps/{first['step_id']}")).json() == first
        assert (await client.get(TASKS)).json()["tasks"] == [task]
        assert (await client.get(f"{TASKS}/{task['task_id']}")).json() == task
        # A step is a turn: question and reply are in the transcript of the seat.
        session = await session_id(client, headers, "main")
        events = (await client.get(f"/api/v1/sessions/{session}/events")).text
        assert '"echo: second"' in events


async def test_a_reply_that_asks_back_is_not_the_last(embedded_hub: HubProcess) -> None:
    alice = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url, headers=bearer(alice)) as client:
        task = await make_task(client, f"@{agent.handle}")
        asked = (await step(client, task, "say hm | ask which one?")).json()
        assert (asked["is_last"], asked["output"]) == (False, "hm\n\nwhich one?")
        answered = (await step(client, task, "the blue one")).json()
        assert (answered["is_last"], answered["output"]) == (True, "you said: the blue one")
        assert agent.prompts[0]["contextId"] == agent.prompts[1]["contextId"]


async def test_artifacts_go_to_the_agent_and_come_back(embedded_hub: HubProcess) -> None:
    alice = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url, headers=bearer(alice)) as client:
        task = await make_task(client, f"@{agent.handle}")
        path = f"{TASKS}/{task['task_id']}/artifacts"
        file = {"file": ("../notes.txt", b"hello \x00 world", "text/plain")}
        uploaded = await client.post(path, files=file, data={"relative_path": "a/./b//"})
        assert uploaded.status_code == 200, uploaded.text
        shown = uploaded.json()
        assert (shown["file_name"], shown["relative_path"], shown["agent_created"]) == ("notes.txt", "a/b", False)
        done = (await step(client, task, "raw r made | say done")).json()
        note = 'file (part 2), as the caller sent it, not in this text: "a/b/notes.txt", "text/plain", 13 bytes'
        assert done["output"] == f"done\n\n{note}"  # an agent that reads text alone knows of the file
        sent = agent.prompts[0]["parts"][1]
        assert sent == {"filename": "a/b/notes.txt", "raw": "aGVsbG8gACB3b3JsZA==", "mediaType": "text/plain"}
        (made,) = done["artifacts"]
        assert (made["file_name"], made["agent_created"]) == ("r.txt", True)
        got = await client.get(f"{path}/{made['artifact_id']}")
        assert (got.content, got.headers["content-disposition"]) == (b"made", 'attachment; filename="r.txt"')
        assert (await client.get(f"{path}/{shown['artifact_id']}")).content == b"hello \x00 world"
        await step(client, task, "again")  # an upload is sent once
        assert not agent.prompts[1].get("parts")
        listed = (await client.get(path)).json()
        assert [one["artifact_id"] for one in listed["artifacts"]] == [shown["artifact_id"], made["artifact_id"]]
        assert (await client.get(f"{TASKS}/{task['task_id']}")).json()["artifacts"] == listed["artifacts"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a\\b", "c:/x", "a\nb", "x" * 513])
def test_a_path_that_leaves_its_task_is_refused(path: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read_relative_path(path)
    assert refused.value.status == 422


async def test_what_is_not_in_order_is_422(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Echo) as agent, web(hub.url, headers=bearer(hub.mint("alice", "session"))) as client:
        task = await make_task(client, f"@{agent.handle}")
        bodies: list[bytes] = [b"{", b"[]", b'{"input": 1}', b'{"input": "\\u0000"}', b'{"input":"a","input":"b"}']
        bodies += [b'{"additional_input": {"agent": 7}}', b'{"additional_input": {"agent": "@stranger/nothing"}}']
        for body in bodies:
            answer = await client.post(TASKS, content=body, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json().keys()) == (422, {"error", "message"}), body
        for query in ("current_page=0", "page_size=-1", "page_size=x", "current_page=" + "9" * 5000):
            assert (await client.get(f"{TASKS}?{query}")).status_code == 422, query
        path = f"{TASKS}/{task['task_id']}/artifacts"
        form = {"content-type": "multipart/form-data; boundary=x"}
        for content in (b"", b"--x", b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\ny\r\n--x--\r\n'):
            assert (await client.post(path, content=content, headers=form)).status_code == 422, content
        assert (await client.post(path, content=b"{}", headers={"content-type": "text/plain"})).status_code == 415
        large = {"file": ("x", b"x" * 524_289)}
        assert (await client.post(path, files=large)).status_code == 413
        assert (await client.put(TASKS, content=b"")).status_code == 405
        assert (await client.get("/ap/v1/agent/nothing")).json()["message"] == "there is no such address"


async def test_a_task_is_its_owners_alone(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    theirs = {}
    async with online(hub, Echo) as agent, web(hub.url) as client:
        client.headers.update(bearer(hub.mint("alice", "session")))
        task = await make_task(client, f"@{agent.handle}")
        done = (await step(client, task, "hi")).json()
        artifact = (await client.post(f"{TASKS}/{task['task_id']}/artifacts", files={"file": ("f", b"x")})).json()
        client.headers.update(bearer(hub.mint("bob", "session")))
        for task_id in (task["task_id"], str(uuid4()), "nothing"):
            below = f"{TASKS}/{task_id}"
            reads = [below, f"{below}/steps", f"{below}/artifacts", f"{below}/steps/{done['step_id']}"]
            reads.append(f"{below}/artifacts/{artifact['artifact_id']}")
            answers = [await client.get(one) for one in reads]
            answers.append(await client.post(f"{below}/steps", json={"input": "mine?"}))
            answers.append(await client.post(f"{below}/artifacts", files={"file": ("f", b"x")}))
            assert {one.status_code for one in answers} == {404}
            theirs[task_id] = [one.text for one in answers]
        assert len({tuple(one) for one in theirs.values()}) == 1
        assert (await client.get(TASKS)).json()["pagination"]["total_items"] == 0
        own = await make_task(client, f"@{agent.handle}")
        stolen = f"{TASKS}/{own['task_id']}/artifacts/{artifact['artifact_id']}"
        assert (await client.get(stolen)).status_code == 404
        assert len(agent.prompts) == 1
        for token in ("", "Bearer wrong", f"Bearer {hub.mint('alice', 'channel')}"):
            client.headers["authorization"] = token
            assert (await client.get(TASKS)).status_code == 401
            assert (await client.post(TASKS, json={})).status_code == 401


async def test_a_step_that_fails_is_no_step(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with web(hub.url, headers=bearer(hub.mint("alice", "session"))) as client:
        async with online(hub, Drop) as agent:
            task = await make_task(client, f"@{agent.handle}")
            failed = await step(client, task, "hi")
            assert (failed.status_code, failed.json().keys()) == (502, {"error", "message"})
        await gone(hub, agent)
        offline = await step(client, task, "hi")
        assert (offline.status_code, offline.json()["error"]) == (409, "offline")
        listed = (await client.get(f"{TASKS}/{task['task_id']}/steps")).json()
        assert listed["steps"] == []


async def test_a_client_that_leaves_finds_its_step_later(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Held) as agent, web(hub.url, headers=bearer(hub.mint("alice", "session"))) as client:
        task = await make_task(client, f"@{agent.handle}")
        path = f"{TASKS}/{task['task_id']}/steps"
        waiting = asyncio.create_task(step(client, task, "slowly"))

        async def statuses() -> list[str]:
            return [one["status"] for one in (await client.get(path)).json()["steps"]]

        async def runs() -> bool:
            return bool(agent.prompts) and await statuses() == ["running"]

        await eventually(runs, "the step runs")
        assert (await step(client, task, "at once")).status_code == 409
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        agent.release.set()

        async def done() -> bool:
            return await statuses() == ["completed"]

        await eventually(done, "the reply is stored")
        (kept,) = (await client.get(path)).json()["steps"]
        assert (kept["output"], kept["is_last"]) == ("echo: slowly", True)


async def test_a_token_that_is_revoked_ends_the_wait_for_a_step(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, Held) as agent, web(hub.url, headers=bearer(hub.mint("alice", "session"))) as client:
        minted = (await client.post("/api/v1/auth/apps/mint", json={"name": "soon revoked"})).json()
        task = await make_task(client, f"@{agent.handle}")
        path = f"{TASKS}/{task['task_id']}/steps"
        async with web(hub.url, headers=bearer(minted["token"])) as app:
            waiting = asyncio.create_task(app.post(path, json={"input": "hi"}))

            await agent.heard("prompt")
            assert (await client.delete(f"/api/v1/tokens/{minted['id']}")).status_code == 204
            assert (await waiting).status_code == 401
        agent.release.set()


@pytest.fixture
def owner(db: None) -> User:
    made: User = User.objects.create(login="tasks")
    return made


def new_task(owner: User, text: str = "first") -> UUID:
    return UUID(protocol_tasks.create_task(owner.pk, "main", RequestBody(input=text))["task_id"])


def begin(owner: User, task_id: UUID, text: str | None = None) -> BegunStep:
    return protocol_tasks.begin_step(owner.pk, task_id, RequestBody(input=text), 30)


def upload(owner: User, task_id: UUID, size: int) -> None:
    protocol_tasks.add_artifact(owner.pk, task_id, NewFile(name="f", mime="", data=b"x" * size))


def test_each_list_of_a_user_is_bounded(owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, PROTOCOL_TASKS=2, STEPS=2, ARTIFACTS=2)
    tasks = [new_task(owner), new_task(owner)]
    with pytest.raises(QuotaExceeded):
        new_task(owner)
    upload(owner, tasks[0], 1)
    files = [NewFile(name=str(n), mime="", data=b"y") for n in range(3)]
    for number in range(2):
        made = protocol_tasks.finish_step(begin(owner, tasks[0], "hi"), "ho", False, files)
        assert len(made["artifacts"]) == 1 - number  # what the agent makes is cut to the room that is left
    with pytest.raises(QuotaExceeded):
        begin(owner, tasks[0], "hi")
    with pytest.raises(QuotaExceeded):
        upload(owner, tasks[0], 1)


def test_bytes_of_tasks_count_as_storage(owner: User, settings: Any) -> None:
    settings.STORAGE_PER_OWNER_MB = 1
    task_id = new_task(owner, "x" * 400_000)
    upload(owner, task_id, 400_000)
    with pytest.raises(RequestRefused) as refused:
        upload(owner, task_id, 200_000)  # 512 KiB wait for a step at most
    assert refused.value.status == 413
    begun = begin(owner, task_id)
    protocol_tasks.mark_sent(begun, "chat")
    protocol_tasks.finish_step(begun, "y" * 300_000, False, ())  # a reply is kept
    with pytest.raises(QuotaExceeded):
        upload(owner, task_id, 1)
    with pytest.raises(QuotaExceeded):
        begin(owner, task_id, "hi")
    with pytest.raises(QuotaExceeded):
        new_task(owner)


def test_a_step_whose_process_died_is_gone_when_its_time_is_up(owner: User) -> None:
    task_id = new_task(owner)
    lost = begin(owner, task_id)
    with pytest.raises(RequestRefused) as refused:
        begin(owner, task_id, "again")
    assert refused.value.status == 409
    ProtocolStep.objects.filter(pk=lost.step.pk).update(until=timezone.now())
    page = PageOf(1, 10)
    assert protocol_tasks.list_steps(owner.pk, task_id, page)["steps"] == []
    protocol_tasks.finish_step(begin(owner, task_id), "done", False, ())
    (step,) = protocol_tasks.list_steps(owner.pk, task_id, page)["steps"]
    assert (step["input"], step["output"]) == ("first", "done")
    with pytest.raises(RequestRefused):
        protocol_tasks.finish_step(lost, "late", False, ())


def test_tasks_that_are_not_used_are_forgotten(owner: User) -> None:
    old, kept = new_task(owner), new_task(owner)
    upload(owner, old, 1)
    protocol_tasks.finish_step(begin(owner, old), "ho", False, [NewFile(name="f", mime="", data=b"y")])
    ProtocolTask.objects.filter(public_id=old).update(used_at=timezone.now() - timedelta(days=8))
    assert jobs.forget_protocol_tasks(7) > 0
    assert [one["task_id"] for one in protocol_tasks.list_tasks(owner.pk, PageOf(1, 10))["tasks"]] == [str(kept)]
    assert not ProtocolStep.objects.exists()
