"""Messages that are being answered here: the same one joins its turn (docs/adr/0011)."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable

import msgspec

from a2a_bridge.idempotency import Claim
from a2a_bridge.requests import Send
from a2a_bridge.tasks.run import TaskRun
from accounts.authn import Identity
from agents.types import Target

Key = tuple[int, int, bytes]
Begin = Callable[[], Awaitable[TaskRun]]


class OpenRuns:
    """The turns of these messages, each from before it begins until it has ended."""

    def __init__(self) -> None:
        self._runs: dict[Key, asyncio.Future[TaskRun]] = {}

    def find(self, key: Key) -> asyncio.Future[TaskRun] | None:
        """What is being begun or answered under a key; not to be cancelled."""
        return self._runs.get(key)

    async def once(self, key: Key, begin: Begin) -> TaskRun:
        """Begin, or get what the same message began; it fails for all of them alike."""
        if (same := self._runs.get(key)) is not None:
            return await asyncio.shield(same)
        self._runs[key] = started = asyncio.get_running_loop().create_future()
        try:
            run = await begin()
        except BaseException as failure:
            self.leave(key)
            _pass_on(failure, started)
            raise
        started.set_result(run)
        return run

    def leave(self, key: Key) -> None:
        """It has ended: who sends it now asks anew."""
        self._runs.pop(key, None)


def key_of(identity: Identity, agent: Target, send: Send, claim: Claim | None) -> Key:
    """Under which a message that is being answered is found."""
    return identity.user_id, agent.session_id, claim.chat_id.encode() if claim else digest_of(send)


def digest_of(send: Send) -> bytes:
    """What tells one message from another: all of it, but for how its answer is to be shown."""
    is_direct = send.takes_direct and send.plain_is_direct
    besides = [one for one in (send.metadata, send.output_modes) if one]
    said = (send.message, send.task_id, send.context_id, is_direct, send.push, *besides)
    body = msgspec.json.encode(said)
    return hashlib.blake2b(body, digest_size=16).digest()


def _pass_on(failure: BaseException, joined: asyncio.Future[TaskRun]) -> None:
    """Those who joined get the same failure; when nobody did, asyncio must not complain."""
    if isinstance(failure, Exception):
        joined.set_exception(failure)
        joined.exception()
    else:
        joined.cancel()
