"""The steps that Redis runs on a task, and the keys of a task; a step that comes too late is not run.

A task is a hash (`seq`, `ended`, `version`, its `snapshot` with the seq it was taken `at`, the seq `first` before
its first event) and a list of its events. A caller's tasks are listed in one hash: id -> line, "" -> bytes in all.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from agents.core.errors import Unavailable

logger = logging.getLogger(__name__)

WITHIN_S = 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Script:
    """Lua that runs without anything in between."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode()).hexdigest())  # noqa: S324  Redis names it so


def task_keys(caller_id: int, task_id: str) -> tuple[str, str, str, str]:
    """The keys of a task, of its events, of its caller's list, and of the entry that the release before wrote."""
    task = f"clawbridge:tasks:{caller_id}:{task_id}"
    return task, f"{task}:events", index_key(caller_id), f"clawbridge:task:{caller_id}:{task_id}"


def index_key(caller_id: int) -> str:
    """The key of the list of a caller's tasks."""
    return f"clawbridge:tasks:{caller_id}"


WRITE = Script("""local task, events, index, old = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local how, expected, seq, ttl_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local version, ended, snapshot, id = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local line, index_ttl_ms, first = ARGV[9], ARGV[10], tonumber(ARGV[11])
local kept = redis.call('HMGET', task, 'seq', 'ended', 'version', 'snapshot_bytes', 'events_bytes')
local known, is_old = tonumber(kept[1]), false
if kept[3] and tonumber(kept[3]) > tonumber(version) then return {'later', 0, 0} end
if not known and redis.call('EXISTS', old) == 1 then known, is_old = 0, true end
if how == 'replace' and (known ~= expected or kept[2] == '1') then return {'lost', 0, 0} end
if known and not is_old and (known >= seq or kept[2] == '1') then return {'kept', 0, 0} end
local begins = not known or is_old or first > known + 1
if begins and snapshot == '' then return {'whole', 0, 0} end
local before = tonumber(kept[4] or 0) + tonumber(kept[5] or 0)
local events_bytes = tonumber(kept[5] or 0)
if begins then
  redis.call('DEL', events, old)
  redis.call('HSET', task, 'first', first - 1)
  known, events_bytes = first - 1, 0
end
for i = 12, #ARGV do
  if first + i - 12 > known then
    redis.call('RPUSH', events, ARGV[i])
    events_bytes = events_bytes + #ARGV[i]
  end
end
redis.call('HSET', task, 'seq', seq, 'ended', ended, 'version', version, 'events_bytes', events_bytes)
local snapshot_bytes = tonumber(kept[4] or 0)
if snapshot ~= '' then
  snapshot_bytes = #snapshot
  redis.call('HSET', task, 'snapshot', snapshot, 'at', seq, 'snapshot_bytes', snapshot_bytes)
end
redis.call('PEXPIRE', task, ttl_ms)
redis.call('PEXPIRE', events, ttl_ms)
local bytes = snapshot_bytes + events_bytes
redis.call('HSET', index, id, line .. ',' .. bytes .. ']')
local all = redis.call('HINCRBY', index, '', bytes - before)
redis.call('PEXPIRE', index, index_ttl_ms)
return {'kept', redis.call('HLEN', index) - 1, all}
""")

READ = Script("""
local kept = redis.call('HMGET', KEYS[1], 'version', 'snapshot', 'at', 'first', 'seq')
if not kept[1] then return {1, redis.call('GET', KEYS[4]), {}} end
local later = redis.call('LRANGE', KEYS[2], kept[3] - kept[4], -1)
if #later ~= kept[5] - kept[3] then return {1, false, {}} end
return {tonumber(kept[1]), kept[2], later}
""")

READ_EVENTS = Script("""
local kept = redis.call('HMGET', KEYS[1], 'seq', 'first')
local from = tonumber(ARGV[1])
if not kept[1] or from < tonumber(kept[2]) or from > tonumber(kept[1]) then return false end
local later = redis.call('LRANGE', KEYS[2], from - kept[2], -1)
return #later == kept[1] - from and later
""")


class Run(NamedTuple):
    """One run of a script, with its keys and arguments."""

    script: Script
    keys: Sequence[str]
    arguments: Sequence[str | bytes | int] = ()


def client(url: str) -> Redis:
    """A Redis client without retries: after a failure it is unknown whether Redis ran the first attempt."""
    return Redis.from_url(
        url, socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S, retry=Retry(NoBackoff(), 0)
    )


async def answers(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    """The answers of scripts, in their order, in one trip; a failure takes the place of its answer.

    Raises:
        Unavailable: Redis is out of reach; it is unknown whether the scripts ran.
    """
    return await in_time(_evaluate(redis, runs)) if runs else []


async def sure_answers(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    """Like `answers`, but a failure of any script is raised.

    Raises:
        Unavailable: Redis is out of reach, or a script failed.
    """
    found = await answers(redis, runs)
    for answer in found:
        if isinstance(answer, Exception):
            raise agent_unreachable(answer)
    return found


async def in_time(answer: Awaitable[T]) -> T:
    """Wait for an answer of Redis, at most WITHIN_S.

    Raises:
        Unavailable: no answer came in time.
    """
    try:
        async with asyncio.timeout(WITHIN_S):
            return await answer
    except (RedisError, OSError) as failure:
        raise agent_unreachable(failure) from None


def agent_unreachable(failure: Exception) -> Unavailable:
    """The exception for a Redis that fails; the log has the cause."""
    logger.warning("tasks.redis_failed", extra={"failure": type(failure).__name__})
    return Unavailable("the task store is out of reach")


async def _evaluate(redis: Redis, runs: Sequence[Run]) -> list[Any]:
    """Redis does not know a script before its first load and after a restart: then the script did not run."""
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
