"""Streams end with the client that reads them, or at their maximum age: no client holds one open for ever."""

import asyncio

from lab.agents import TaskPeer, online
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.v1.caller import Caller


async def test_a_client_that_leaves_frees_its_streams(make_storage: MakeStorage, start_hub: StartHub) -> None:
    """The task asks for something, and might for a day: nothing but the client's leaving ends the stream."""
    hub = start_hub(make_storage("embedded"), STREAMS_PER_CALLER=2)
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, hub.mint("alice", "session"))
        asking = {"id": (await caller.send("ask which?"))["id"]}
        for _ in range(2):
            async with caller.open("SubscribeToTask", asking) as events:
                await anext(events)

        async def has_room() -> bool:
            try:
                async with caller.open("SubscribeToTask", asking):
                    return True
            except AssertionError:  # an answer that is no stream
                return False

        await eventually(has_room, "a stream may be opened again")


async def test_a_stream_ends_at_its_age_and_its_task_goes_on(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), STREAM_MAX_AGE_S=1)
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, hub.mint("alice", "session"))
        asking = {"id": (await caller.send("ask which?"))["id"]}
        async with asyncio.timeout(30), caller.open("SubscribeToTask", asking) as events:
            [only] = [event async for event in events]
        assert only.content == await caller.get(asking["id"])
        assert only.state == "INPUT_REQUIRED"
