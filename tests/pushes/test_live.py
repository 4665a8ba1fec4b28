"""Pushes of a running hub: asked for over real HTTP, received by real programs."""

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest
from joserfc.errors import JoseError

from lab.agents import TaskPeer, gone, online
from lab.callers import web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.receivers import Received, Receiver, receiving
from tests.pushes.client import (
    CREATE,
    DELETE,
    GET,
    LIST,
    SETTINGS,
    SIGNATURE,
    Client,
    check_signed,
    client,
    heard,
    states,
)

JWKS = "/.well-known/jwks.json"
TASK_NOT_FOUND = -32001
INVALID_PARAMS = -32602
ROUND = "note reading | text a1 one | last a1 two | say all | say  done"


@pytest.fixture(scope="module")
def hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """One process on SQLite that may send on this machine."""
    started = HubProcess.start(make_storage("embedded"), **SETTINGS)
    yield started
    started.stop()


@pytest.fixture
async def peer(hub: HubProcess) -> AsyncIterator[TaskPeer]:
    """An agent that is asked."""
    async with online(hub, TaskPeer) as connected:
        yield connected


@pytest.fixture
def caller(hub: HubProcess, peer: TaskPeer) -> Client:
    """A caller of that agent."""
    return client(hub, peer)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A program that is told."""
    with receiving() as listening:
        yield listening


async def test_a_caller_who_asks_is_told_from_the_start_to_the_end(receiver: Receiver, caller: Client) -> None:
    push = {"token": "tok-1", "authentication": {"scheme": "Bearer", "credentials": "cred-1"}}
    task = await caller.asked(ROUND, {"url": receiver.url, **push})
    told = await heard(receiver, 5)
    assert states(told) == ["WORKING", "WORKING", "a1", "reply-1", "COMPLETED"]
    assert told[1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "reading"}]
    assert told[2]["artifactUpdate"]["artifact"]["parts"] == [{"text": "one"}, {"text": "two"}]
    assert told[3]["artifactUpdate"]["artifact"]["parts"] == [{"text": "all"}, {"text": " done"}]
    for one in (part for body in told for part in body.values()):
        assert (one["taskId"], one["contextId"]) == (task["id"], task["contextId"])
    for arrived in receiver.received:
        assert arrived.headers["content-type"] == "application/a2a+json"
        assert arrived.headers["authorization"] == "Bearer cred-1"
        assert arrived.headers["x-a2a-notification-token"] == "tok-1"


async def test_an_artifact_its_agent_left_open_is_whole_when_the_turn_ends(hub: HubProcess) -> None:
    for ending, more in (("complete done", ["reply-1", "COMPLETED"]), ("ask which?", ["INPUT_REQUIRED"])):
        with receiving() as receiver:
            async with online(hub, TaskPeer) as peer:
                await client(hub, peer).asked(f"text plan one | more plan two | {ending}", {"url": receiver.url})
                told = await heard(receiver, 2 + len(more))
        assert states(told) == ["WORKING", "plan", *more]
        assert told[1]["artifactUpdate"]["artifact"]["parts"] == [{"text": "one"}, {"text": "two"}]
        assert told[1]["artifactUpdate"]["lastChunk"] is True


async def test_an_artifact_of_a_failed_turn_is_not_told_as_whole(receiver: Receiver, caller: Client) -> None:
    await caller.asked("text plan one | fail no more paper", {"url": receiver.url})
    assert states(await heard(receiver, 2)) == ["WORKING", "FAILED"]


async def test_every_push_is_signed_by_the_key_the_hub_publishes(
    hub: HubProcess, receiver: Receiver, caller: Client
) -> None:
    task = await caller.asked("reply done", {"url": receiver.url})
    await heard(receiver, 3)
    async with web(hub.url) as http:
        keys = (await http.get(JWKS)).json()
    claims = [check_signed(one, keys, receiver.url) for one in receiver.received]
    assert [one["jti"] for one in claims] == [f"{task['id']}.{seq}" for seq in (1, 2, 3)]
    assert {one["taskId"] for one in claims} == {task["id"]}
    assert {one["iss"] for one in claims} == {hub.url}
    changed = Received("/", receiver.received[0].headers | {SIGNATURE: "e30.e30.AAAA"}, b"{}")
    with pytest.raises((JoseError, ValueError)):
        check_signed(changed, keys, receiver.url)


async def test_what_an_agent_asks_is_told_and_so_is_how_it_goes_on(receiver: Receiver, caller: Client) -> None:
    task = await caller.asked("ask which one?", {"url": receiver.url})
    assert states(await heard(receiver, 2))[-1] == "INPUT_REQUIRED"
    await caller.asked("the blue one", taskId=task["id"])
    told = await heard(receiver, 5)
    assert states(told) == ["WORKING", "INPUT_REQUIRED", "WORKING", "reply-2", "COMPLETED"]
    assert told[1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "which one?"}]


@pytest.mark.parametrize("script", ["hold | reply never", "ask what?"])
async def test_a_cancel_is_told(receiver: Receiver, caller: Client, peer: TaskPeer, script: str) -> None:
    task = await caller.asked(script, {"url": receiver.url})
    seen = 1 if script.startswith("hold") else 2
    await heard(receiver, seen)
    await caller.call("CancelTask", {"id": task["id"]})
    assert states(await heard(receiver, seen + 1))[-1] == "CANCELED"
    peer.release.set()


async def test_a_refused_ask_is_told_as_failed(hub: HubProcess) -> None:
    with receiving() as receiver:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
        await gone(hub, peer)
        task = await caller.asked("hello?", {"url": receiver.url})
        assert task["status"]["state"] == "TASK_STATE_FAILED"
        assert states(await heard(receiver, 1)) == ["FAILED"]


async def test_a_receiver_that_fails_is_tried_again_and_hears_all_in_order(hub: HubProcess) -> None:
    first = itertools.count()
    with receiving(lambda _: 500 if next(first) == 0 else 204) as receiver, receiving() as other:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
            task = await caller.asked("hold | reply done", {"url": receiver.url})
            await heard(receiver, 1)
            await caller.add(task, other.url)
            peer.release.set()
            assert states(await heard(other, 2)) == ["reply-1", "COMPLETED"]
            told = await heard(receiver, 4)
    assert states(told) == ["WORKING", "WORKING", "reply-1", "COMPLETED"]
    assert receiver.received[0].body == receiver.received[1].body
    assert receiver.received[0].headers[SIGNATURE] != receiver.received[1].headers[SIGNATURE]


async def test_a_deleted_address_hears_no_more(hub: HubProcess) -> None:
    with receiving() as receiver, receiving() as other:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
            task = await caller.asked("hold | reply done", {"url": receiver.url, "id": "a"})
            await heard(receiver, 1)
            await caller.add(task, other.url, id="b")
            for _ in range(2):  # repeating it does not tell that it is gone
                assert await caller.call(DELETE, {"taskId": task["id"], "id": "a"}) == {}
            peer.release.set()
            await heard(other, 2)
            assert len(receiver.received) == 1
            assert (await caller.refusal(GET, {"taskId": task["id"], "id": "a"}))["code"] == TASK_NOT_FOUND


async def test_addresses_can_be_read_listed_and_replaced(
    receiver: Receiver, caller: Client, peer: TaskPeer
) -> None:
    task = await caller.asked("hold")
    named_by_caller = await caller.add(task, receiver.url, id="mine")
    assert named_by_caller == {"taskId": task["id"], "id": "mine", "url": receiver.url}
    assert await caller.call(DELETE, {"taskId": task["id"], "id": "mine"}) == {}
    secret = {"scheme": "Bearer", "credentials": "cred-9"}
    made = await caller.add(task, receiver.url, token="tok", authentication=secret)
    assert made["authentication"] == secret
    named = {"taskId": task["id"], "id": made["id"]}
    shown = await caller.call(GET, named)
    assert shown == made | {"authentication": {"scheme": "Bearer"}}  # credentials are not shown again
    await caller.add(task, receiver.url + "/2", id=made["id"])
    await caller.add(task, receiver.url + "/3", id="third")
    page = await caller.addresses(task, pageSize=1)
    assert [one["url"] for one in page["configs"]] == [receiver.url + "/2"]
    rest = await caller.addresses(task, pageToken=page["nextPageToken"])
    assert [one["id"] for one in rest["configs"]] == ["third"]
    assert rest["nextPageToken"] == ""
    refused = await caller.refusal(LIST, {"taskId": task["id"], "pageToken": "x'"})
    assert refused["code"] == INVALID_PARAMS
    for number in range(8):
        await caller.add(task, receiver.url, id=f"n{number}")
    refused = await caller.refusal(CREATE, {"taskId": task["id"], "url": receiver.url})
    assert (refused["code"], "10 push configs" in refused["message"]) == (INVALID_PARAMS, True)
    peer.release.set()


async def test_a_foreign_task_an_absent_one_and_an_absent_address_look_the_same(
    hub: HubProcess, receiver: Receiver, peer: TaskPeer
) -> None:
    alice, bob = client(hub, peer), client(hub, peer, "bob")
    task = await alice.asked("hold", {"url": receiver.url, "id": "a"})
    errors = [
        await bob.refusal(CREATE, {"taskId": task["id"], "url": receiver.url}),
        await bob.refusal(GET, {"taskId": task["id"], "id": "a"}),
        await bob.refusal(DELETE, {"taskId": task["id"], "id": "a"}),
        await bob.refusal(LIST, {"taskId": task["id"]}),
        await bob.refusal(GET, {"taskId": "task-none", "id": "a"}),
        await alice.refusal(GET, {"taskId": task["id"], "id": "other"}),
    ]
    for error in errors[1:]:
        assert error == errors[0]
    assert errors[0]["code"] == TASK_NOT_FOUND
    peer.release.set()


async def test_an_address_of_no_task_is_refused_by_the_name_of_what_is_missing(hub: HubProcess) -> None:
    async with online(hub, TaskPeer) as peer:
        for named in ({}, {"taskId": ""}):
            error = await client(hub, peer).refusal(CREATE, {"url": "https://push.invalid/"} | named)
            assert error["code"] == INVALID_PARAMS
            assert error["data"][1]["fieldViolations"][0]["field"] == "taskId"


UNSENDABLE: list[tuple[str, dict[str, object]]] = [
    *(("url", {"url": url}) for url in ("ftp://example.com/", "https://[1.2.3.4x]/", "nonsense")),
    ("url", {"url": "https://user:word@example.com/"}),
    *(("token", {"token": token}) for token in ("a\r\nX-Evil: 1", "grüße")),
    ("authentication.scheme", {"authentication": {"scheme": "Bear er", "credentials": "x"}}),
    ("authentication.credentials", {"authentication": {"scheme": "Bearer", "credentials": "x\ny"}}),
]


async def test_what_cannot_be_sent_is_refused_before_an_agent_is_asked(hub: HubProcess) -> None:
    async with online(hub, TaskPeer) as peer:
        caller = client(hub, peer)
        task = await caller.asked("reply first")
        for field, push in UNSENDABLE:
            body = {"url": "https://push.invalid/"} | push
            error = await caller.refusal(CREATE, {"taskId": task["id"], **body})
            assert (error["code"], error["message"].partition(":")[0]) == (INVALID_PARAMS, field)
            configuration = {"taskPushNotificationConfig": body}
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "second"}]}
            error = await caller.refusal("SendMessage", {"message": message, "configuration": configuration})
            violation = error["data"][1]["fieldViolations"][0]["field"]
            assert violation == f"configuration.taskPushNotificationConfig.{field}"
        assert [prompt["text"] for prompt in peer.prompts] == ["reply first"]


INSIDE = [
    "http://169.254.169.254/latest/meta-data/",
    "https://169.254.169.254/",
    "https://127.0.0.1:8443/",
    "https://[::ffff:10.0.0.1]/",
    "https://localhost/",
    "https://example.com:22/",
]


async def test_by_default_nothing_is_sent_inside(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, TaskPeer) as peer:
        caller = client(embedded_hub, peer)
        task = await caller.asked("reply one")
        for url in INSIDE:
            error = await caller.refusal(CREATE, {"taskId": task["id"], "url": url})
            assert (error["code"], error["message"].partition(":")[0]) == (INVALID_PARAMS, "url"), url
        assert (await caller.addresses(task))["configs"] == []


async def test_other_dialects_know_no_pushes(hub: HubProcess) -> None:
    async with online(hub, TaskPeer) as peer:
        caller = client(hub, peer)
        del caller.headers["A2A-Version"]
        error = await caller.refusal(CREATE, {"taskId": "t", "url": "https://example.com"})
        assert error["code"] == -32601
        answer = await caller.post("tasks/pushNotificationConfig/set", {"taskId": "t"})
        assert answer.json()["error"]["code"] == -32601
