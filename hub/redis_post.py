"""The post between processes: one Redis pub/sub channel a process."""

import asyncio
import logging
import time

import msgspec
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.exceptions import RedisError

from agents.post import Handler, Message
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5
AWAY_S = 1.0
SILENCE_S = 5.0
START_WITHIN_S = 15.0
SEND_WITHIN_S = 2.0

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


class RedisPost:
    """See `agents.post.Post`. A message is lost when Redis is; finals are sent again, the rest times out."""

    def __init__(self, url: str) -> None:
        self._sending = Redis.from_url(url, socket_timeout=SEND_WITHIN_S, socket_connect_timeout=SEND_WITHIN_S)
        self._listening = Redis.from_url(
            url, socket_timeout=None, socket_connect_timeout=SEND_WITHIN_S, socket_keepalive=True
        )
        self._order = asyncio.Lock()
        self._away_until = 0.0
        self._tasks = TaskSet()

    async def send(self, process_id: str, message: Message) -> bool:
        """One at a time, so that a reply's chunks arrive in order. While Redis is away: at once, to nobody."""
        async with self._order:
            if time.monotonic() < self._away_until:
                return False
            try:
                return bool(await self._sending.publish(_channel(process_id), _encode(message)))
            except (RedisError, OSError) as failure:
                logger.warning("post.send_failed", extra={"failure": type(failure).__name__})
                self._away_until = time.monotonic() + AWAY_S
                return True  # nobody can tell whether it left

    async def start(self, process_id: str, handler: Handler) -> None:
        """Raises TimeoutError when Redis stays out of reach."""
        await self._tasks.cancel()
        subscribed = asyncio.Event()
        self._tasks.start(self._listen(process_id, handler, subscribed), name="post")
        async with asyncio.timeout(START_WITHIN_S):
            await subscribed.wait()

    async def close(self) -> None:
        await self._tasks.cancel()
        await self._sending.aclose()
        await self._listening.aclose()

    async def _listen(self, process_id: str, handler: Handler, subscribed: asyncio.Event) -> None:
        while True:
            try:
                async with self._listening.pubsub() as pubsub:
                    await pubsub.subscribe(_channel(process_id))
                    await self._hear(pubsub, handler, subscribed)
            except Exception as failure:  # noqa: BLE001  deafness is worse than anything a library may raise
                logger.warning("post.listen_failed", extra={"failure": type(failure).__name__})
                await asyncio.sleep(AGAIN_AFTER_S)

    async def _hear(self, pubsub: PubSub, handler: Handler, subscribed: asyncio.Event) -> None:
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
