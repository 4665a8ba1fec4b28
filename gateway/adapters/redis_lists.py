"""The Redis keys of the team's older transport: lists of envelopes, read and written in batches."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
from redis import Redis

from gateway.adapters.redis_envelopes import Dialect
from gateway.envelope import Json

INBOX, AGENTS = "openclaw:a2a:inbox:", "openclaw:a2a:agents"
MESSAGES = "A2A:messages:"
AT_ONCE = 500
KEPT_S = 604_800
TIMEOUT_S = 10.0


def connect(url: str) -> Redis:
    """A client of a server, that gives up after TIMEOUT_S."""
    client: Redis = Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    return client


def read_lists(redis: Redis) -> Iterator[tuple[str, bytes]]:
    """Every envelope in the lists of both dialects, the oldest of each list first; each with where it is."""
    for prefix in (INBOX, MESSAGES):
        for key in sorted(redis.scan_iter(match=f"{prefix}*", count=AT_ONCE)):
            if redis.type(key) == b"list":
                yield from _read_list(redis, key, is_newest_first=prefix == INBOX)


def write_lists(redis: Redis, envelopes: Iterable[Json], dialect: Dialect) -> int:
    """Add envelopes to the lists of a dialect, in order; how many."""
    count = 0
    for envelope in envelopes:
        count += 1
        text = msgspec.json.encode(envelope)
        if dialect == "inbox":
            redis.sadd(AGENTS, envelope["to"])
            redis.lpush(f"{INBOX}{envelope['to']}", text)
        else:
            key = f"{MESSAGES}{envelope['channel']}:{datetime.now(UTC).date().isoformat()}"
            redis.rpush(key, text)
            redis.expire(key, KEPT_S)
    return count


def _read_list(redis: Redis, key: bytes, *, is_newest_first: bool) -> Iterator[tuple[str, bytes]]:
    """By index from the old end, so that what is added meanwhile at the other end moves nothing."""
    name = key.decode(errors="replace")
    for start in range(0, redis.llen(key), AT_ONCE):
        first, last = start, start + AT_ONCE - 1
        if is_newest_first:
            first, last = -1 - last, -1 - first
        found = redis.lrange(key, first, last)
        for index, text in enumerate(reversed(found) if is_newest_first else found):
            yield f"{name}[{start + index}]", text if isinstance(text, bytes) else text.encode()
