"""The parts of a hub with several processes, on Redis and Celery (docs/adr/0163).

Other modules import this one where such a hub is built: an embedded hub loads none of these libraries.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from kombu.exceptions import OperationalError
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from a2a_bridge.service.tasks.redis import RedisTaskStore
from agents.core.post import Handler, Message
from hub.caller_rate import SHARED_AT_ONCE, CallerRate, wait_s
from hub.celery import app
from kit.batch_writer import Batcher
from kit.durations import seconds
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5
UNREACHABLE_S = 1.0
SILENCE_S = seconds(5.0, at_least_s=2.0)
START_WITHIN_S = 15.0
SEND_WITHIN_S = 2.0
MAX_WAITING = 256  # pieces of replies, of at most 64 KiB each

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _SentMessage:
    """A message on its way; `reached` says whether it may have reached a process."""

    channel: str
    data: bytes
    reached: bool = True  # until Redis has answered


class RedisPost:
    """See `agents.core.post.Post`. When Redis is lost, so are its messages: the ends of turns are sent again, and
    requests that wait for other messages time out.

    Messages that are sent at the same time travel together, one batch after another: their order is kept, and a
    slow Redis costs its delay once, not once a message. The post tries no message twice, as the message might
    arrive twice.
    """

    def __init__(self, url: str) -> None:
        self._sending = Redis.from_url(
            url,
            socket_timeout=SEND_WITHIN_S,
            socket_connect_timeout=SEND_WITHIN_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._listening = Redis.from_url(
            url, socket_timeout=None, socket_connect_timeout=SEND_WITHIN_S, socket_keepalive=True
        )
        self._outgoing = Batcher(self._publish)
        self._away_until = 0.0
        self._tasks = TaskSet()

    async def send(self, process_id: str, message: Message) -> bool:
        """Fails at once while Redis is unreachable."""
        sent = _SentMessage(_channel(process_id), _encode(message))
        await self._outgoing.add(sent)
        return sent.reached

    async def pass_on(self, process_id: str, message: Message) -> None:
        """See `agents.core.post.Post`. With MAX_WAITING messages on their way this method waits like `send`."""
        written = self._outgoing.put(_SentMessage(_channel(process_id), _encode(message)))
        if self._outgoing.waiting >= MAX_WAITING:
            # Shielded: the whole batch shares this future.
            await asyncio.shield(written)

    async def start(self, process_id: str, handler: Handler) -> None:
        """See `agents.core.post.Post`. Raises TimeoutError when Redis cannot be reached."""
        # A start that failed is tried again, and two listeners would hand over each message twice.
        await self._tasks.cancel()
        subscribed = asyncio.Event()
        self._tasks.start(self._listen(process_id, handler, subscribed), name="post")
        async with asyncio.timeout(START_WITHIN_S):
            await subscribed.wait()

    async def is_reachable(self) -> bool:
        """True if Redis answers within SEND_WITHIN_S."""
        try:
            async with asyncio.timeout(SEND_WITHIN_S):
                return bool(await self._sending.ping())
        except (RedisError, OSError, TimeoutError):
            return False

    async def close(self) -> None:
        await self._tasks.cancel()
        await self._sending.aclose()
        await self._listening.aclose()

    async def _publish(self, batch: Sequence[_SentMessage]) -> None:
        """Publish all messages in one round trip."""
        counts: Sequence[int] = [0] * len(batch)
        if time.monotonic() >= self._away_until:
            pipe = self._sending.pipeline(transaction=False)
            for sent in batch:
                pipe.publish(sent.channel, sent.data)
            try:
                counts = await pipe.execute()
            except (RedisError, OSError) as failure:  # it is unknown which messages Redis took
                logger.warning("post.send_failed", extra={"failure": type(failure).__name__, "count": len(batch)})
                # `reached` stays True: a prompt that may have left must not be given back.
                self._away_until = time.monotonic() + UNREACHABLE_S
                return
        # While Redis is away nothing is sent: the counts are zeros, and all of it provably reached no process.
        for sent, count in zip(batch, counts, strict=True):
            sent.reached = count > 0

    async def _listen(self, process_id: str, handler: Handler, subscribed: asyncio.Event) -> None:
        while True:
            try:
                async with self._listening.pubsub() as pubsub:
                    await pubsub.subscribe(_channel(process_id))
                    await self._receive(pubsub, handler, subscribed)
            except Exception as failure:  # noqa: BLE001  deafness is worse than anything a library may raise
                logger.warning("post.listen_failed", extra={"failure": type(failure).__name__})
                await asyncio.sleep(AGAIN_AFTER_S)

    async def _receive(self, pubsub: PubSub, handler: Handler, subscribed: asyncio.Event) -> None:
        """Hand on messages; two silences in a row, although a ping was sent between, mean a dead connection."""
        silences = 0
        while silences < 2:
            item = await pubsub.get_message(timeout=SILENCE_S)
            if item is None:
                silences += 1
                await pubsub.ping()
                continue
            silences = 0
            if item["type"] == "subscribe":
                subscribed.set()
            elif item["type"] == "message":
                await _handle(handler, item["data"])
        raise ConnectionError("no answer to a ping")


async def _handle(handler: Handler, data: bytes) -> None:
    try:
        await handler(_decode(data))
    except msgspec.DecodeError:
        logger.warning("post.unreadable", extra={"bytes": len(data)})
    except Exception:
        logger.exception("post.handler_failed")


def _channel(process_id: str) -> str:
    return f"clawbridge:post:{process_id}"


__all__ = ["RedisPost", "RedisRate", "RedisTaskStore", "call_worker", "make_caller_rate"]


CALL_EXPIRES_S = 10
STORE_WITHIN_S = 1.0


class RedisRate:
    """See `hub.caller_rate.SharedRate`. Raises TimeoutError if Redis does not count an ask within `within_s`."""

    def __init__(self, per_minute: int, url: str, *, within_s: float = STORE_WITHIN_S) -> None:
        self._within_s = within_s
        self._item = RateLimitItemPerMinute(per_minute)
        self._pool = BlockingConnectionPool.from_url(url, max_connections=SHARED_AT_ONCE, timeout=within_s)
        options: dict[str, Any] = {"connection_pool": self._pool}
        self._limiter = MovingWindowRateLimiter(RedisStorage(f"async+{url}", implementation="redispy", **options))

    async def retry_in_s(self, caller_id: int) -> int:
        """See `hub.caller_rate.SharedRate`."""
        async with asyncio.timeout(self._within_s):
            if await self._limiter.hit(self._item, "caller", str(caller_id)):
                return 0
            return wait_s(await self._limiter.get_window_stats(self._item, "caller", str(caller_id)))

    async def close(self) -> None:
        """See `hub.caller_rate.SharedRate`."""
        await self._pool.aclose()


def make_caller_rate(per_minute: int, redis_url: str) -> CallerRate:
    """A rate that all processes with that Redis share."""
    return CallerRate(per_minute, RedisRate(per_minute, redis_url))


def call_worker(job: str) -> None:
    """Have a Celery worker run a job soon; a call that fails is logged."""
    try:
        app.send_task(job, expires=CALL_EXPIRES_S, retry=False)
    except OperationalError as failure:
        logger.warning("worker.not_called", extra={"failure": type(failure).__name__})
