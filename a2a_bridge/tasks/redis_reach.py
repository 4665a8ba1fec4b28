"""Redis, reached in time or not at all: scripts in one trip, each with its answer."""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from a2a_bridge.tasks.redis_scripts import Script
from agents.errors import Unavailable

logger = logging.getLogger(__name__)

WITHIN_S = 1.0

T = TypeVar("T")


class Run(NamedTuple):
    """A script, what it works on, and with what."""

    script: Script
    keys: Sequence[str]
    arguments: Sequence[str | bytes | int] = ()


def client(url: str) -> Redis:
    """A client that never tries twice: it could not tell whether it had done it the first time."""
    return Redis.from_url(
        url, socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S, retry=Retry(NoBackoff(), 0)
    )


async def answers(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    """What scripts answer, in their order, in one trip; a failure takes the place of its answer.

    Raises:
        Unavailable: Redis is out of reach; nobody can tell whether they ran.
    """
    return await in_time(_evaluate(redis, runs)) if runs else []


async def sure_answers(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    """The same, when all of them are needed.

    Raises:
        Unavailable: Redis is out of reach, or refused one.
    """
    found = await answers(redis, runs)
    for answer in found:
        if isinstance(answer, Exception):
            raise out_of_reach(answer)
    return found


async def in_time(answer: Awaitable[T]) -> T:
    """An answer within WITHIN_S.

    Raises:
        Unavailable: it did not come.
    """
    try:
        async with asyncio.timeout(WITHIN_S):
            return await answer
    except (RedisError, OSError) as failure:
        raise out_of_reach(failure) from None


def out_of_reach(failure: Exception) -> Unavailable:
    """What to raise; what went wrong is in the log."""
    logger.warning("tasks.redis_failed", extra={"failure": type(failure).__name__})
    return Unavailable("the task store is out of reach")


async def _evaluate(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    """Redis may not know a script yet, or no more: then it did not run."""
    found = await _evaluate_known(redis, runs)
    missed = [i for i, answer in enumerate(found) if isinstance(answer, NoScriptError)]
    if missed:
        for text in {runs[i].script.text for i in missed}:
            await redis.script_load(text)
        for i, answer in zip(missed, await _evaluate_known(redis, [runs[i] for i in missed]), strict=True):
            found[i] = answer
    return found


async def _evaluate_known(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    pipe = redis.pipeline(transaction=False)
    for run in runs:
        pipe.evalsha(run.script.sha, len(run.keys), *run.keys, *run.arguments)
    return await pipe.execute(raise_on_error=False)
