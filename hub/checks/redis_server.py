"""What Redis does when it is full."""

from collections.abc import Iterator

from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.core.checks import Warning as Caution
from redis import Redis
from redis.exceptions import RedisError

WITHIN_S = 2.0


def check_redis() -> Iterator[CheckMessage]:
    """Jobs and tasks must not be dropped while somebody still wants them."""
    if not settings.REDIS_URL:
        return
    try:
        with Redis.from_url(settings.REDIS_URL, socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S) as redis:
            memory = redis.info("memory")
    except (RedisError, OSError) as failure:
        yield Caution(
            f"Redis could not be asked ({type(failure).__name__}).",
            hint="Check REDIS_URL and that the server runs.",
            id="clawbridge.W009",
        )
        return
    if str(memory["maxmemory_policy"]).startswith("allkeys-"):
        yield Error(
            f"Redis drops any key when it is full ({memory['maxmemory_policy']}): jobs that wait are among them.",
            hint="Set maxmemory-policy volatile-ttl: only what expires anyway is dropped.",
            id="clawbridge.E008",
        )
    if not memory["maxmemory"]:
        yield Caution(
            "Redis has no maxmemory: it grows until the machine has none left.",
            hint="Set maxmemory, and maxmemory-policy volatile-ttl.",
            id="clawbridge.W010",
        )
