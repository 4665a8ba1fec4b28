"""With any process killed, and the address stored by any: the end of a task is sent once, and last."""

import threading

import pytest

from lab.agents import Stall, TaskPeer, online
from lab.hub_process import HubProcess
from lab.receivers import Received, receiving
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.pushes.client import client, heard, states
from tests.webhooks.senders import end_leases, kill_sender, start_sender

pytestmark = pytest.mark.slow


async def noted(hub: HubProcess) -> None:
    """Wait until the hub has noted what the receiver answered: what it has not noted, it sends again."""

    async def is_noted() -> bool:
        return not sql(hub, "SELECT id FROM a2a_bridge_push WHERE status = 'sending'")

    await eventually(is_noted, "no push is being sent")


async def test_what_was_on_its_way_when_the_sender_was_killed_comes_again(sending_hub: HubProcess) -> None:
    hub = sending_hub
    alive = threading.Event()

    def answer(_: Received) -> int:
        return 204 if alive.wait(30) else 500

    with receiving(answer) as receiver:
        async with online(hub, TaskPeer) as peer:
            caller = client(hub, peer)
            task = await caller.send("reply done", {"taskPushNotificationConfig": {"url": receiver.url}})
            assert task["status"]["state"] == "TASK_STATE_COMPLETED"
            await heard(receiver, 1)
            kill_sender(hub)
            alive.set()
            end_leases(hub, "a2a_bridge_push")
            start_sender(hub)
            told = await heard(receiver, 4)
    assert states(told) == ["WORKING", "WORKING", "reply-1", "COMPLETED"]


async def test_a_task_whose_process_died_is_told_as_failed(sending_hub: HubProcess) -> None:
    hub = sending_hub
    with receiving() as receiver:
        async with online(hub, Stall) as peer:
            await client(hub, peer).asked("lost", {"url": receiver.url})
            await peer.heard("prompt")
            await heard(receiver, 1)
            await noted(hub)
            hub.kill9()
            hub.serve(0)
            told = await heard(receiver, 2, within_s=45)
    assert states(told) == ["WORKING", "FAILED"]
    [part] = told[1]["statusUpdate"]["status"]["message"]["parts"]
    assert part["text"] == "the hub stopped before the agent answered"


async def test_another_process_than_the_tasks_keeps_the_address(sending_hub: HubProcess) -> None:
    """On SQLite the address is added to the task of the one process."""
    with receiving() as receiver:
        async with online(sending_hub, TaskPeer) as peer:
            caller = client(sending_hub, peer)
            task = await caller.asked("hold | note soon | reply done")
            await peer.heard("prompt")

            async def works() -> bool:
                return bool((await caller.get(task["id"]))["status"]["state"] == "TASK_STATE_WORKING")

            await eventually(works, "the task works before the address is added")
            await client(sending_hub, peer, at=-1).add(task, receiver.url)
            peer.release.set()
            told = await heard(receiver, 3)
    assert states(told) == ["WORKING", "reply-1", "COMPLETED"]
