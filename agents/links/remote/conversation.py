"""One question to a remote server, followed until its task rests: by its stream, else by looking again."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress

from agents.links.remote.client import RemoteClient
from agents.links.remote.dialects import Question
from agents.links.remote.events import Event
from agents.links.remote.failures import Declined, Lost, Malformed, RemoteFailure
from agents.links.remote.reply import Reply
from kit.durations import seconds

LOOK_AGAIN_S = tuple(map(seconds, (0.2, 0.5, 1.0, 2.0, 5.0)))  # then every 5 s
LOOKS_LOST = 3


async def converse(
    client: RemoteClient,
    question: Question,
    reply: Reply,
    *,
    on_send: Callable[[], None],
    on_event: Callable[[Event], None],
) -> None:
    """Ask, and pass on what is said until `reply.end` is there. `on_event`: called with each event
    before it is passed on.

    Raises:
        RemoteFailure: it will not come.
        TooLarge: nothing more of it is wanted.
    """
    if question.task_id:
        await _know_before(client, question.task_id, reply)
    try:
        async with aclosing(client.ask(question, on_send)) as events:
            async for event in events:
                on_event(event)
                reply.take(event)
                if reply.end is not None:
                    return
    except Lost:
        # Once the server named the task, or told how the continued one stands, it has the question: from then on
        # the hub looks for the answer, and never asks again.
        if not reply.task_id or (reply.task_id == question.task_id and not reply.state):
            raise
    if not reply.task_id:
        raise Malformed("the remote agent ended without an answer")
    await _look_again(client, reply, on_event)


async def _know_before(client: RemoteClient, task_id: str, reply: Reply) -> None:
    reply.is_continued = True
    with suppress(RemoteFailure):  # the question itself will show what is wrong
        reply.know(await client.get_task(task_id))


async def _look_again(client: RemoteClient, reply: Reply, on_event: Callable[[Event], None]) -> None:
    """The task goes on without a stream: the server answered early, knows none, or the connection broke."""
    looks = lost = 0
    while reply.end is None:
        await asyncio.sleep(LOOK_AGAIN_S[min(looks, len(LOOK_AGAIN_S) - 1)])
        looks += 1
        try:
            task = await client.get_task(reply.task_id)
        except Declined:
            raise
        except RemoteFailure as failure:
            lost += 1
            if lost == LOOKS_LOST:
                raise Lost(str(failure)) from None
            continue
        lost = 0
        on_event(task)
        reply.take(task)
