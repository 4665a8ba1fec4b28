"""Pushes of running hubs: asked for over real HTTP, received by real programs, whoever is killed meanwhile."""

from collections.abc import Iterator

import pytest

from tests.homes import MakeHome
from tests.hub_process import HubProcess
from tests.peers import TaskPeer, online
from tests.pushes.house import SETTINGS, SIGNATURE, client, heard, states
from tests.receivers import receiving


@pytest.fixture(scope="module")
def hub(make_home: MakeHome) -> Iterator[HubProcess]:
    """One process on SQLite that may send on this machine."""
    started = HubProcess.start(make_home("embedded"), **SETTINGS)
    yield started
    started.stop()


async def test_whoever_asks_is_told_from_the_start_to_the_end(hub: HubProcess) -> None:
    with receiving() as receiver:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
            push = {
                "url": receiver.url,
                "token": "tok-1",
                "authentication": {"scheme": "Bearer", "credentials": "cred-1"},
            }
            task = await caller.send("note reading | text a1 one | last a1 two | say all | say  done", push)
            told = await heard(receiver, 5)
    assert states(told) == ["WORKING", "WORKING", "a1", "reply-1", "COMPLETED"]
    assert told[1]["statusUpdate"]["status"]["message"]["parts"] == [{"text": "reading"}]
    assert told[2]["artifactUpdate"]["artifact"]["parts"] == [{"text": "onetwo"}]
    assert told[3]["artifactUpdate"]["artifact"]["parts"] == [{"text": "all done"}]
    for one in (part for body in told for part in body.values()):
        assert (one["taskId"], one["contextId"]) == (task["id"], task["contextId"])
    for one in receiver.received:
        assert one.headers["content-type"] == "application/a2a+json"
        assert one.headers["authorization"] == "Bearer cred-1"
        assert one.headers["x-a2a-notification-token"] == "tok-1"
        assert SIGNATURE in one.headers


async def test_an_address_added_while_it_runs_hears_the_rest(hub: HubProcess) -> None:
    with receiving() as receiver:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
            task = await caller.send("hold | note late | reply done")
            await peer.heard("prompt")
            config = await caller.add(task["id"], receiver.url, id="mine")
            assert config == {"taskId": task["id"], "id": "mine", "url": receiver.url}
            peer.release.set()
            told = await heard(receiver, 3)
    assert states(told) == ["WORKING", "reply-1", "COMPLETED"]
