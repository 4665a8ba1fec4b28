"""The post between processes: one Redis pub/sub channel a process."""

import asyncio
import logging

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agents.post import Handler, Message
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5
SEND_WITHIN_S = 2.0

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode


class RedisPost:
    """See `agents.post.Post`. A message is lost when Redis is; finals are sent again, the rest times out."""

    def __init__(self, url: str) -> None:
        self._sending = Redis.from_url(url, socket_timeout=SEND_WITHIN_S, socket_connect_timeout=SEND_WITHIN_S)
        self._listening = Redis.from_url(
            url, socket_timeout=None, socket_connect_timeout=SEND_WITHIN_S, health_check_interval=15
        )
        self._order = asyncio.Lock()
        self._tasks = TaskSet()

    async def send(self, process_id: str, message: Message) -> bool:
        """One at a time, so that the chunks of a reply arrive in order."""
        try:
            async with self._order:
                receivers = await self._sending.publish(_channel(process_id), _encode(message))
        except (RedisError, OSError) as failure:
            logger.warning("post.send_failed", extra={"failure": type(failure).__name__})
            return True  # nobody can tell whether it left
        return bool(receivers)

    async def start(self, process_id: str, handler: Handler) -> None:
        subscribed = asyncio.Event()
        self._tasks.start(self._listen(process_id, handler, subscribed), name="post")
        await subscribed.wait()

    async def close(self) -> None:
        await self._tasks.cancel()
        await self._sending.aclose()
        await self._listening.aclose()

    async def _listen(self, process_id: str, handler: Handler, subscribed: asyncio.Event) -> None:
        while True:
            try:
                async with self._listening.pubsub(ignore_subscribe_messages=True) as pubsub:
                    await pubsub.subscribe(_channel(process_id))
                    subscribed.set()
                    async for item in pubsub.listen():
                        await _handle(handler, item["data"])
            except (RedisError, OSError) as failure:
                logger.warning("post.listen_failed", extra={"failure": type(failure).__name__})
                await asyncio.sleep(AGAIN_AFTER_S)


async def _handle(handler: Handler, data: bytes) -> None:
    try:
        await handler(_decode(data))
    except msgspec.DecodeError:
        logger.warning("post.unreadable", extra={"bytes": len(data)})
    except Exception:
        logger.exception("post.handler_failed")


def _channel(process_id: str) -> str:
    return f"clawbridge:post:{process_id}"
