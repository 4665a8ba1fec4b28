"""The HTTP+JSON binding of A2A 1.0: every address, what it takes, and what it says of what it does not take."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from a2a_bridge.surface.addresses import ADDRESSES
from lab.agents import Held, TaskPeer, online
from lab.callers import Json, bearer, question, web
from lab.hub_process import HubProcess
from tests.http_json import V1, Client, client, refusal

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the agent


# Of the session, as the hub is: else this module would be a group of its own, with a hub of its own.
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def agent(embedded_hub: HubProcess) -> AsyncIterator[TaskPeer]:
    """One agent for all tests: most of them are refused before it is asked."""
    async with online(embedded_hub, TaskPeer, owner="bound") as peer:
        yield peer


@pytest_asyncio.fixture(loop_scope="session")
async def alice(embedded_hub: HubProcess, agent: TaskPeer) -> AsyncIterator[Client]:
    async with client(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session")) as one:
        yield one


@asynccontextmanager
async def held(hub: HubProcess) -> AsyncIterator[tuple[Held, Client]]:
    """An agent that waits, and who asks it."""
    async with (
        online(hub, Held) as peer,
        client(hub.url, peer.handle, hub.mint("alice", "session")) as one,
    ):
        yield peer, one


def states(events: list[tuple[str, Json]]) -> list[str]:
    return [frame["statusUpdate"]["status"]["state"] for _, frame in events if "statusUpdate" in frame]


async def test_a_message_is_answered_with_the_finished_task(alice: Client) -> None:
    task = await alice.send("hello")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][0]["parts"] == [{"text": "echo: hello"}]
    assert await alice.get(f"tasks/{task['id']}") == task


async def test_a_tenant_in_the_path_is_ignored_as_no_card_declares_one(alice: Client) -> None:
    task = (await alice.post("acme/message:send", question("hello")))["task"]
    assert task["artifacts"][0]["parts"] == [{"text": "echo: hello"}]
    assert await alice.get(f"acme/tasks/{task['id']}") == task
    for path in ("a/b/tasks", "acme", "acme/", f"/tasks/{task['id']}/acme"):
        refusal(await alice.call("GET", path), 404, "METHOD_NOT_FOUND")


async def test_a_message_can_be_streamed_without_envelopes(alice: Client) -> None:
    events = await alice.read("POST", "message:stream", question("say one | say two"))
    task = events[0][1]["task"]
    assert [next(iter(frame)) for _, frame in events[:2]] == ["task", "statusUpdate"]
    assert states(events)[-1] == "TASK_STATE_COMPLETED"
    texts = [frame["artifactUpdate"]["artifact"]["parts"] for _, frame in events if "artifactUpdate" in frame]
    assert [{"text": "one"}] in texts
    ids = [event_id for event_id, _ in events]
    assert len(set(ids)) == len(ids)
    assert all(one.rpartition(".")[0] == task["id"] for one in ids)


async def test_both_bindings_show_one_and_the_same_task(embedded_hub: HubProcess, alice: Client) -> None:
    task = await alice.send("hello")
    params = {"id": task["id"]}
    token = embedded_hub.mint("alice", "session")
    async with web(embedded_hub.url) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": params}
        answer = await http.post(alice.base, json=body, headers=bearer(token) | V1)
    assert answer.json()["result"] == task


async def test_a_query_may_be_spelled_in_both_ways(alice: Client) -> None:
    task = await alice.send("hello")
    assert "history" in await alice.get(f"tasks/{task['id']}")
    for query in ("historyLength=0", "history_length=0", "historyLength=0&historyLength=0"):
        assert "history" not in await alice.get(f"tasks/{task['id']}?{query}"), query


async def test_tasks_are_listed_in_pages_with_filters(alice: Client) -> None:
    made = [await alice.send("hello", contextId="c/ü:1") for _ in range(2)] + [await alice.send("other")]
    page = await alice.get("tasks", params={"contextId": "c/ü:1", "pageSize": "1"})
    assert (page["totalSize"], page["pageSize"], page["tasks"][0]["id"]) == (2, 1, made[1]["id"])
    assert "artifacts" not in page["tasks"][0]
    wanted = {"contextId": "c/ü:1", "pageToken": page["nextPageToken"], "includeArtifacts": "true"}
    last = await alice.get("tasks", params=wanted)
    assert (last["nextPageToken"], last["tasks"][0]["id"]) == ("", made[0]["id"])
    assert last["tasks"][0]["artifacts"]
    assert (await alice.get("tasks?status=TASK_STATE_FAILED"))["tasks"] == []
    since = {"statusTimestampAfter": made[2]["status"]["timestamp"], "unknown": "ignored"}
    assert [task["id"] for task in (await alice.get("tasks", params=since))["tasks"]] == [made[2]["id"]]


BAD_QUERIES = [
    ("pageSize=0", "pageSize"),
    ("pageSize=101", "pageSize"),
    ("pageSize=1&pageSize=2", "pageSize"),
    ("pageSize=x", "pageSize"),
    ("pageSize=" + "9" * 5000, "pageSize"),
    ("historyLength=-1", "historyLength"),
    ("historyLength=1.5", "historyLength"),
    ("status=WORKING", "status"),
    ("includeArtifacts=yes", "includeArtifacts"),
    ("includeArtifacts=1", "includeArtifacts"),
    ("pageToken=nonsense", "pageToken"),
    ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
    ("contextId=%00", "contextId"),
    ("contextId=%ff", "query"),
    ("contextId=" + "c" * 129, "contextId"),
    ("&".join(f"a{i}=1" for i in range(65)), "query"),
]


async def test_a_query_of_another_form_is_refused_by_name(alice: Client, subtests: pytest.Subtests) -> None:
    for query, field in BAD_QUERIES:
        with subtests.test(query=query):
            error = refusal(await alice.call("GET", f"tasks?{query}"), 400, "INVALID_PARAMS")
            assert error["status"] == "INVALID_ARGUMENT"
            assert error["details"][1]["fieldViolations"][0]["field"] == field


async def test_a_task_is_canceled_with_and_without_a_body(embedded_hub: HubProcess) -> None:
    async with held(embedded_hub) as (peer, alice):
        for count, body in enumerate((b"", b" ", b"{}", b'{"metadata": {"why": "enough"}}'), 1):
            task = await alice.send("hello", now=True)
            await peer.heard("prompt", count=count)
            canceled = await alice.post(f"tasks/{task['id']}:cancel", content=body)
            assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
            again = await alice.call("POST", f"tasks/{task['id']}:cancel")
            assert refusal(again, 400, "TASK_NOT_CANCELABLE")["status"] == "FAILED_PRECONDITION"


@pytest.mark.parametrize("verb", ["GET", "POST"])
async def test_a_task_is_followed_by_both_verbs(embedded_hub: HubProcess, verb: str) -> None:
    async with held(embedded_hub) as (peer, alice):
        task = await alice.send("hello", now=True)
        async with alice.stream(verb, f"tasks/{task['id']}:subscribe") as events:
            told = aiter(events)
            assert (await anext(told))[1]["task"]["id"] == task["id"]
            peer.release.set()
            rest = [event async for event in told]
        assert states(rest)[-1] == "TASK_STATE_COMPLETED"
        ended = await alice.call(verb, f"tasks/{task['id']}:subscribe")
        assert refusal(ended, 400, "UNSUPPORTED_OPERATION")["status"] == "FAILED_PRECONDITION"


async def test_a_client_that_comes_back_gets_what_it_missed_once(embedded_hub: HubProcess, alice: Client) -> None:
    whole = await alice.read("POST", "message:stream", question("say one | say two | say three"))
    task_id = whole[0][1]["task"]["id"]
    path = f"tasks/{task_id}:subscribe"
    missed = await alice.read("GET", path, Last_Event_ID=whole[1][0])
    assert missed == whole[2:]
    foreign = {"Last-Event-ID": "task-0000.1"}
    refusal(await alice.call("GET", path, headers=foreign), 404, "TASK_NOT_FOUND")


ABSENT = ["message:send/x", "message", "message:", "tasks:", "tasks/a/b", "tasks//", "tasks/a:b", "/tasks"]
ABSENT += ["v1/card", "card", "acme", "a/b/tasks", "a/b/message:send", "pushNotificationConfigs", "agents"]
ABSENT += [
    "Tasks",
    "tasks/%00",
    "tasks/a%0ab",
    "tasks/a%2Fb",
    "%2e%2e/tasks",
    "message%2Fsend",
    "x" * 5000,
    "ö",
    "tasks/\u202e",
]


async def test_an_address_that_is_none_is_404_in_this_bindings_shape(alice: Client) -> None:
    for path in ABSENT:
        for verb in ("GET", "POST", "DELETE", "PUT"):
            refusal(await alice.call(verb, path), 404, "METHOD_NOT_FOUND")


async def test_no_user_comes_in_without_a_live_token(alice: Client) -> None:
    """That all addresses are closed is shown by `tenancy/test_agents.py`."""
    for token in (None, "Bearer nonsense", "Basic x"):
        answer = await alice.call("GET", "tasks", headers={"Authorization": token})
        assert refusal(answer, 401, "UNAUTHENTICATED")["status"] == "UNAUTHENTICATED"
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_at_each_address_another_verb_is_405_and_an_absent_agent_is_404_before_all_else(
    embedded_hub: HubProcess, alice: Client, subtests: pytest.Subtests
) -> None:
    async with client(embedded_hub.url, "unknown/nothing", "") as one:
        for address in ADDRESSES:
            path = address.path.format(id="x", taskId="x")
            for verb in {"GET", "POST", "PUT", "PATCH", "DELETE"} - address.calls.keys():
                with subtests.test(verb=verb, path=path):
                    answer = await alice.call(verb, path)
                    refusal(answer, 405, "INVALID_REQUEST")
                    assert answer.headers["allow"] == ", ".join([*address.verbs, "OPTIONS"])
            for verb in ("PUT", *address.calls):
                refusal(await one.call(verb, path, headers={"Content-Type": "x"}), 404, "AGENT_NOT_FOUND")


async def test_only_version_1_0_has_this_binding_and_may_stand_in_the_query(
    agent: TaskPeer, alice: Client, subtests: pytest.Subtests
) -> None:
    seen = len(agent.prompts)
    for version in (None, "", "0.3", "0.3.0", "2.0", "abc", "1.7", "99.0"):
        headers = {"A2A-Version": version}
        with subtests.test(version=version):
            answer = await alice.call("POST", "message:send", headers=headers, json=question("hello"))
            assert refusal(answer, 400, "VERSION_NOT_SUPPORTED")["status"] == "FAILED_PRECONDITION"
    assert len(agent.prompts) == seen
    for version in ("1", "1.0", "1.0.1"):
        answer = await alice.call("GET", f"tasks?A2A-Version={version}", headers={"A2A-Version": None})
        assert answer.status_code == 200, version


async def test_slashes_at_the_end_and_the_at_sign_are_tolerated(alice: Client) -> None:
    assert (await alice.post("message:send/", question("hello")))["task"]
    alice.base = alice.base.replace("/agents/", "/agents/@")
    assert (await alice.get("tasks/"))["tasks"]


async def test_head_is_get_without_a_body_but_opens_no_stream(alice: Client) -> None:
    task = await alice.send("ask which?")
    answer = await alice.call("HEAD", f"tasks/{task['id']}")
    assert (answer.status_code, answer.content) == (200, b"")
    assert (await alice.call("HEAD", "tasks/x")).status_code == 404
    assert (await alice.call("HEAD", f"tasks/{task['id']}:subscribe")).status_code == 405


async def test_a_browser_may_ask_first(alice: Client) -> None:
    for path in ("message:send", "tasks/x", "tasks/x:subscribe", "no/such/thing"):
        answer = await alice.call("OPTIONS", path, headers={"Authorization": None})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, "*")
        assert "DELETE" in answer.headers["access-control-allow-methods"]
        assert "A2A-Version" in answer.headers["access-control-allow-headers"]


async def test_the_cookie_writes_from_the_hubs_own_pages_only(embedded_hub: HubProcess, alice: Client) -> None:
    token = alice.headers.pop("Authorization").removeprefix("Bearer ")
    alice.headers["Cookie"] = f"cw_session={token}"
    foreign = {"Origin": "https://elsewhere.example"}
    for verb, path in (
        ("POST", "message:send"),
        ("POST", "tasks/x:cancel"),
        ("DELETE", "tasks/x/pushNotificationConfigs/y"),
    ):
        answer = await alice.call(verb, path, headers=foreign, content=b"{}")
        assert refusal(answer, 403, "FOREIGN_ORIGIN")["status"] == "PERMISSION_DENIED"
        refusal(await alice.call(verb, path, content=b"{}"), 403, "FOREIGN_ORIGIN")
    own = {"Origin": embedded_hub.url}
    assert (await alice.call("POST", "message:send", headers=own, json=question("hi"))).status_code == 200
    assert (await alice.call("GET", "tasks", headers=foreign)).status_code == 200


async def test_revoking_the_token_ends_a_waiting_answer(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint_again("carol", "session")
    async with (
        online(embedded_hub, Held) as peer,
        client(embedded_hub.url, peer.handle, token) as carol,
        web(embedded_hub.url) as http,
    ):
        waiting = asyncio.create_task(carol.call("POST", "message:send", json=question("hello")))
        await peer.heard("prompt")
        assert (await http.post("/api/v1/auth/logout", headers=bearer(token))).status_code == 204
        answer = await waiting
        assert answer.json()["error"]["code"] == 401
        refusal(await carol.call("GET", "tasks"), 401, "UNAUTHENTICATED")
