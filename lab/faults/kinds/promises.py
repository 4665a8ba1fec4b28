"""I12, I13 and I16: limits, revocation and restarts, which the load alone does not try."""

import asyncio
import json
import random
import re
import time
from itertools import takewhile

from lab.callers import Json, call
from lab.faults.agents import EchoAgent
from lab.faults.fault import OWNER, Fault, Scene, became_true
from lab.faults.requests import AskAnswer

ONLINE_WITHIN_S = 30.0
NOTICED_WITHIN_S = 4.0  # documented as 2 s; the rest is for a busy machine
PER_MINUTE = 30
ASKS_AT_ONCE = 3 * PER_MINUTE
REVOKE = """
UPDATE accounts_credential SET revoked_at = now()
WHERE user_id = (SELECT id FROM accounts_user WHERE login = %s) AND revoked_at IS NULL
"""
VOLATILE = re.compile(r'"(\w*(?:At|Ms|Seen|ts|generatedAt|online|lastUsed)|connected)": *("[^"]*"|\w+)')
TASKS_COMPARED = 40
SETTLED_WITHIN_S = 60.0
ABSENT = "nothing"


async def limit_callers(scene: Scene) -> None:
    """One caller asks thrice as often as a minute allows, through all processes at once."""
    logins = [f"hurried-{random.randrange(10**9)}" for _ in range(scene.count)]
    await asyncio.to_thread(scene.stack.mint, [(login, "session") for login in logins])
    for login in logins:
        began = time.monotonic()
        asking = [_ask_any(scene, login, number % len(scene.stack.urls)) for number in range(ASKS_AT_ONCE)]
        answers = await asyncio.gather(*asking)
        passed = sum("over your rate limit" not in answer.text for answer in answers)
        if time.monotonic() - began < 60:
            what = "at most one ask above the limit passes for a caller in a minute, over all processes"
            scene.note(what, passed <= PER_MINUTE + 1, f"{passed} of {len(answers)}")


async def _ask_any(scene: Scene, login: str, url: int) -> AskAnswer:
    return await scene.load.ask_once(random.choice(scene.participants.agents), login, "v1", url)


async def revoke_tokens(scene: Scene) -> None:
    """A caller's token and an agent's are revoked while one streams and the other is connected."""
    logins = [f"leaving-{random.randrange(10**9)}" for number in range(scene.count)]
    await asyncio.to_thread(
        scene.stack.mint, [(login, kind) for login in logins for kind in ("session", "channel")]
    )
    for login in logins:
        async with scene.extra_agent(EchoAgent) as slow:  # one each: a caller without an answer keeps its agent
            slow.is_silent = True
            await _revoke(scene, slow, login)


async def _revoke(scene: Scene, slow: EchoAgent, login: str) -> None:
    agent = EchoAgent([scene.stack.urls[-1]], scene.stack.tokens[login, "channel"], scene.log, name=login)
    agent.start()
    await asyncio.wait_for(agent.online.wait(), ONLINE_WITHIN_S)
    agent.comes_back = False
    streaming = asyncio.ensure_future(scene.load.ask_once(slow, login, "hub stream", 0))
    opened = await became_true(lambda: login in _streaming(scene), ONLINE_WITHIN_S) and not streaming.done()
    scene.note("a stream was open when its token was revoked", opened, login)
    await asyncio.to_thread(scene.stack.sql, REVOKE, login)
    began = time.monotonic()
    for url in range(len(scene.stack.urls)):
        answer = await scene.load.ask_once(slow, login, "v1", url)
        scene.note("the next request of a revoked token is refused", answer.status == 401, f"{answer}")
    if opened:
        done = await became_true(streaming.done, NOTICED_WITHIN_S)
        scene.note("an open stream of a revoked token ends in 2 s", done, f"{time.monotonic() - began:.1f} s")
    gone = await became_true(lambda: agent.is_over, NOTICED_WITHIN_S)
    scene.note("the socket of a revoked token is closed in 2 s", gone, f"{time.monotonic() - began:.1f} s")
    await streaming
    await agent.stop()


def _streaming(scene: Scene) -> list[str]:
    """The logins of callers that have an open turn."""
    open_turns = (
        "SELECT u.login FROM agents_turn t JOIN accounts_user u ON u.id = t.caller_id WHERE outcome IS NULL"
    )
    return [login for (login,) in scene.stack.sql(open_turns)]


async def restart_everything(scene: Scene) -> None:
    """Kill every process and both servers, and start them again; compare the answers of the API but for times."""
    for _ in range(scene.count):
        await _ask_some(scene)
        scene.note("no turn was open before a restart", await scene.no_turn_open(SETTLED_WITHIN_S))
        before = await _snapshot(scene)
        await _kill_and_start(scene)
        after = await _snapshot(scene)
        for path in before | after:
            shown, now = before.get(path, ABSENT), after.get(path, ABSENT)
            ok = now == shown
            scene.note("the API answers after a restart as before it", ok, f"{path}: {_difference(shown, now)}")


async def _ask_some(scene: Scene) -> None:
    """Make some tasks to compare."""
    for number in range(TASKS_COMPARED):
        await scene.ask(scene.agent(number), number)


async def _kill_and_start(scene: Scene) -> None:
    stack = scene.stack
    for url in range(len(stack.urls)):
        await stack.kill_web(url)
    stack.kill_worker()
    stack.kill_beats()
    await stack.restart_postgres("immediate")
    await asyncio.to_thread(stack.redis.stop)
    await asyncio.to_thread(stack.redis.start)
    await asyncio.gather(stack.start_worker(), stack.start_beat(), *map(stack.serve, range(len(stack.urls))))
    await asyncio.wait_for(scene.all_online(), ONLINE_WITHIN_S)


async def _snapshot(scene: Scene) -> dict[str, str]:
    """The answers of the API by request, without times and presence."""
    participants, shown = scene.participants, {}
    for owner in ("owner-0", OWNER):
        for path in ("/api/v1/agents?limit=50", "/api/v1/webhooks", "/api/v1/tokens", "/api/v1/peers"):
            shown[f"{owner} {path}"] = _without_times(await participants.call(owner, "GET", path))
    rows = scene.stack.sql(
        "SELECT t.id, t.handle, u.login FROM a2a_bridge_storedtask t JOIN accounts_user u ON u.id = t.caller_id"
        " WHERE has_ended ORDER BY updated_at DESC LIMIT %s",
        TASKS_COMPARED,
    )
    scene.note("tasks were compared over a restart", len(rows) == TASKS_COMPARED, f"{len(rows)}")
    for task_id, handle, login in rows:
        token = scene.stack.tokens[login, "session"]
        answer = await call(scene.stack.url, handle, token, "GetTask", {"id": task_id}, version="1.0")
        shown[f"{login} {task_id}"] = json.dumps(answer.json(), sort_keys=True)
    return shown


def _difference(shown: str, now: str) -> str:
    """The text around the first difference of two answers."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shown, now, strict=False)))
    around = slice(max(0, same - 60), same + 60)
    return f"…{shown[around]}… became …{now[around]}…"


def _without_times(answer: Json) -> str:
    return VOLATILE.sub(r'"\1"', json.dumps(answer, sort_keys=True))


FAULTS = [
    Fault("I12", "a caller over the rate limit, four processes", 0, 20, limit_callers,
          stack={"processes": 4, "env": {"CALLER_RATE_PER_MINUTE": PER_MINUTE}},
          loops=0,
          fills=("at most one ask above the limit",)),
    Fault("I13", "tokens are revoked", 1, 50, revoke_tokens,
          fills=("the next request", "an open stream", "the socket")),
    Fault("I16", "everything is killed and started again", 0, 5, restart_everything,
          loops=0, fills=("the API answers",)),
]  # fmt: skip
