"""F11, F12 and F25: hosts whose clocks are wrong, or are set while they run, and midnight."""

import asyncio
import os
import struct
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from email.utils import parsedate_to_datetime
from pathlib import Path

from lab import ROOT
from lab.callers import bearer, web
from lab.faults.agents import EchoAgent
from lab.faults.fault import Fault, Scene, became_true
from lab.faults.kinds.programs import sweep_age_s

SKEWED = ROOT / "lab" / "faults" / "skewed"
OFFSETS_S = ((90_000, -90_000), (600, -600))
SERVED_WITHIN_S = 60.0
ASKS_SKEWED = 150
NEAR_S = 30
NOT_TODAY = "SELECT count(*) FROM agents_turn WHERE usage_day <> (asked_at AT TIME ZONE 'utc')::date AND id > %s"
NOT_NOW = (
    "SELECT count(*) FROM agents_turn WHERE id > %s AND (asked_at > now() OR settled_at > now() OR asked_at < %s)"
)
GIVEN_UP = "SELECT count(*) FROM agents_turn WHERE id > %s AND reason = 'process_died'"
TASKS_OFF = (
    "SELECT count(*) FROM a2a_bridge_storedtask s JOIN agents_turn t USING (chat_id)"
    " WHERE t.id > %s AND updated_at NOT BETWEEN %s AND now()"
)
NEWEST = "SELECT coalesce(max(id), 0), now() - interval '5 seconds' FROM agents_turn"  # some are being written
DEVICE = "/api/v1/auth/device"

# F25. Servers write the Date header anew each second. Without a step, jobs run every 5 s.
DATED_AFTER_S = 2.0
SWEPT_AFTER_S, SWEPT_WITHIN_S = 15.0, 60.0

# F12. An unqualified function is looked for along the search path, the system's own first unless the path says
# otherwise: so this database has the clock of `faults.shift`, for everything that connects from now on.
SHIFTED = """
CREATE SCHEMA IF NOT EXISTS faults;
CREATE TABLE IF NOT EXISTS faults.shift (by interval NOT NULL);
INSERT INTO faults.shift SELECT '0' WHERE NOT EXISTS (SELECT FROM faults.shift);
CREATE OR REPLACE FUNCTION faults.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
  AS 'SELECT pg_catalog.clock_timestamp() + by FROM faults.shift';
CREATE OR REPLACE FUNCTION faults.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
  AS 'SELECT pg_catalog.statement_timestamp() + by FROM faults.shift';
CREATE OR REPLACE FUNCTION faults.now() RETURNS timestamptz LANGUAGE sql STABLE
  AS 'SELECT pg_catalog.now() + by FROM faults.shift';
ALTER DATABASE hub SET search_path = faults, pg_catalog, public;
UPDATE accounts_credential SET expires_at = NULL
"""
JUMP = "UPDATE faults.shift SET by = %s::timestamptz - pg_catalog.clock_timestamp()"
AFRESH = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'hub' AND pid <> pg_backend_pid()"
EVES = ("2028-02-28", "2028-02-29", "2028-12-31", "2029-03-24", "2029-10-27")  # leap days, a year, clock changes
BEFORE_S = 25  # of which agents need some to be back: their connections were of another day
ROLL_CALLERS = 100
CAP = 20
SPENT = """
SELECT u.day::text, u.queries, a.daily_budget,
  (SELECT count(*) FROM agents_turn t WHERE t.agent_id = a.id AND t.usage_day = u.day)
FROM agents_dailyusage u JOIN agents_agent a ON a.id = u.agent_id WHERE a.handle = %s
"""


async def skew(scene: Scene) -> None:
    """Two web processes at a time, one ahead and one behind by a day or by ten minutes; then right again."""
    for number in scene.numbers:
        offsets_s = OFFSETS_S[number % len(OFFSETS_S)]
        await _restart(scene, *offsets_s)
        await _check_wrong(scene, *offsets_s)
    await _restart(scene, 0, 0)
    await scene.check_served("processes whose clocks were put right serve", SERVED_WITHIN_S)


async def step(scene: Scene) -> None:
    """The clocks of all running processes are set, ahead and back by a day or by ten minutes; then right again."""
    of_web, other = [_clock(scene, url) for url in range(2)], _clock(scene, 2)
    await _restart(scene, 0, 0, clocks=of_web)
    await _restart_jobs(scene, **wrong_clock(other))
    for number in scene.numbers:
        offsets_s = OFFSETS_S[number % len(OFFSETS_S)]
        for steps_s in ((*offsets_s, offsets_s[0]), (*reversed(offsets_s), offsets_s[1]), (0, 0, 0)):
            for clock, offset_s in zip([*of_web, other], steps_s, strict=True):
                set_clock(clock, offset_s)
            await asyncio.sleep(DATED_AFTER_S)
            await _check_wrong(scene, *steps_s[:2])
            await _check_swept(scene, steps_s[2])
    await _restart(scene, 0, 0)
    await _restart_jobs(scene)
    await scene.check_served("processes whose clocks were set serve", SERVED_WITHIN_S)


def wrong_clock(clock: Path) -> dict[str, str]:
    """The environment of a process whose clock `set_clock` sets by this file."""
    return {"PYTHONPATH": os.pathsep.join([str(SKEWED), str(ROOT)]), "CLOCK_OFFSET_FILE": str(clock)}


def set_clock(clock: Path, offset_s: float) -> None:
    """Set the clocks that follow this file so many seconds ahead of the true time."""
    file = os.open(clock, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(file, struct.pack("d", offset_s), 0)  # in place: processes have mapped the file
    finally:
        os.close(file)


async def midnight(scene: Scene) -> None:
    """The database's clock passes midnight while 100 callers spend one agent's budget of two days."""
    loops = scene.load.loops
    await _load(scene, 0)  # a turn that is open while the clock jumps would last a day
    await scene.no_turn_open(SERVED_WITHIN_S)
    scene.stack.sql(SHIFTED)
    for number in scene.numbers:
        await _roll(scene, EVES[number % len(EVES)], number)
    await _load(scene, loops)


async def _load(scene: Scene, loops: int) -> None:
    await scene.load.stop()
    scene.load.loops = loops
    scene.load.start()


def _clock(scene: Scene, number: int) -> Path:
    """The file by which a clock is set, which is right at first."""
    clock = scene.stack.folder / f"clock-{number}"
    set_clock(clock, 0)
    return clock


async def _restart(scene: Scene, *offsets_s: int, clocks: Sequence[Path] = ()) -> None:
    """Restart the web processes one after the other, each with its offset; with `clocks`, also without one."""
    for index, offset_s in enumerate(offsets_s):
        scene.stack.terminate_web(index)
        await scene.stack.web_exited(index, "SIGTERM")
        env: dict[str, str] = {}
        if offset_s or clocks:
            clock = clocks[index] if clocks else _clock(scene, index)
            set_clock(clock, offset_s)
            env = wrong_clock(clock)
        await scene.stack.serve(index, **env)


async def _restart_jobs(scene: Scene, **env: object) -> None:
    """Restart the worker and the beat. `env`: settings of both."""
    scene.stack.kill_worker()
    scene.stack.kill_beats()
    await asyncio.gather(scene.stack.start_worker(**env), scene.stack.start_beat(**env))


async def _check_wrong(scene: Scene, *offsets_s: int) -> None:
    """Check that web processes with these clocks serve, and that nothing is dated by them."""
    ((newest, began),) = scene.stack.sql(NEWEST)
    by = f"(±{abs(offsets_s[0])} s)"
    await _read_clocks(scene, *offsets_s)
    await scene.check_served(f"processes with wrong clocks serve {by}", SERVED_WITHIN_S)
    await scene.asked(ASKS_SKEWED)
    await _check_tokens(scene, by)
    _none(scene, f"no asks are counted on another day than the database's {by}", NOT_TODAY, newest)
    _none(scene, f"turns are dated by the database {by}", NOT_NOW, newest, began)
    _none(scene, f"tasks are dated by the database {by}", TASKS_OFF, newest, began)
    _none(scene, f"no living process counts as dead {by}", GIVEN_UP, newest)


async def _check_swept(scene: Scene, offset_s: int) -> None:
    """Check that the periodic jobs go on after the clocks of worker and beat were set."""

    async def is_swept() -> bool:
        age_s = await sweep_age_s(scene.stack.url)
        return age_s is not None and age_s < SWEPT_AFTER_S

    await asyncio.sleep(SWEPT_AFTER_S)  # what ran before the step does not count
    swept = await became_true(is_swept, SWEPT_WITHIN_S)
    scene.note("periodic jobs run after clocks were set", swept, f"to {offset_s} s")


async def _read_clocks(scene: Scene, *offsets_s: int) -> None:
    """Read the clocks of the processes from the Date headers of their answers."""
    for url, offset_s in zip(scene.stack.urls, offsets_s, strict=True):
        async with web(url) as client:
            said = parsedate_to_datetime((await client.get("/livez")).headers["date"])
        off_s = said.timestamp() - time.time()
        scene.note("the clocks were wrong", abs(off_s - offset_s) < NEAR_S, f"{off_s:.0f} s")


def _none(scene: Scene, what: str, statement: str, *values: object) -> None:
    count = scene.stack.sql(statement, *values)[0][0]
    scene.note(what, count == 0, f"{count} are")


async def _check_tokens(scene: Scene, by: str) -> None:
    """Use and revoke at one process the tokens and codes that the other process made."""
    first, last = scene.stack.urls[0], scene.stack.urls[-1]
    owner = bearer(scene.stack.tokens[scene.caller(0), "session"])
    for here, there in ((first, last), (last, first)):
        async with web(here) as near, web(there) as far:
            codes = (await near.post(f"{DEVICE}/code", json={"app_name": "faults"})).json()
            polled = await far.post(f"{DEVICE}/token", json={"device_code": codes["device_code"]})
            pending = "pending" in polled.text
            scene.note(f"a sign-in code of one process waits at the other {by}", pending, polled.text[:100])
            minted = (await near.post("/api/v1/auth/apps/mint", json={"name": "faults"}, headers=owner)).json()
            token = bearer(minted["token"])
            scene.stack.tokens[minted["token"][-6:], "app"] = minted["token"]  # I15 looks for it
            taken = (await far.get("/api/v1/me", headers=token)).status_code
            scene.note(f"a token of one process is accepted by the other {by}", taken == 200, str(taken))
            [newest, *_] = (await far.get("/api/v1/tokens", headers=owner)).json()["items"]
            revoked = await far.delete(f"/api/v1/tokens/{newest['id']}", headers=owner)
            refused = (await near.get("/api/v1/me", headers=token)).status_code
            ok = revoked.is_success and refused == 401
            scene.note(f"a revoked token is refused {by}", ok, f"{revoked.status_code} {refused}")


async def _roll(scene: Scene, eve: str, number: int) -> None:
    seconds = 60 - BEFORE_S
    year = int(eve[:4]) + 10 * (number // len(EVES))  # on and on, never back
    scene.stack.sql(JUMP, f"{year}{_leap_safe(eve, year)} 23:59:{seconds:02}+00")
    scene.stack.sql(AFRESH)
    await asyncio.wait_for(scene.all_online(), SERVED_WITHIN_S)
    async with AsyncExitStack() as stack:
        added = [scene.extra_agent(EchoAgent, dailyBudgetQueries=CAP, concurrencyCap=20) for _ in range(4)]
        agents = [await stack.enter_async_context(one) for one in added]
        until = time.monotonic() + BEFORE_S + 15
        await asyncio.gather(*(_spend(scene, agents[one % 4], one, until) for one in range(ROLL_CALLERS)))
        for agent in agents:
            days = scene.stack.sql(SPENT, agent.handle)
            kept = all(queries == counted <= cap for _, queries, cap, counted in days)
            scene.note("no day's budget is overspent, whichever midnight passes", kept, f"{agent.handle}: {days}")
            spent = [queries == cap for _, queries, cap, _ in days]
            scene.note("the budgets of both days were spent", spent == [True, True], f"{agent.handle}: {days}")


async def _spend(scene: Scene, agent: EchoAgent, number: int, until: float) -> None:
    while time.monotonic() < until:
        await scene.ask(agent, number)
        await asyncio.sleep(0.5)


def _leap_safe(eve: str, year: int) -> str:
    """The month and day of an eve, in a year that may have no 29 February."""
    is_leap = year % 4 == 0 and (year % 100 or year % 400 == 0)
    return "-02-27" if eve.endswith("-02-29") and not is_leap else eve[4:]


FAULTS = [
    Fault("F11", "clocks of web processes are wrong by minutes and by a day", 1, 10, skew,
          fills=("the clocks were wrong", "no asks are counted", "turns are dated", "a revoked token")),
    Fault("F12", "midnight passes, 100 callers", 1, 20, midnight,
          stack={"env": {"LOG_LEVEL": "ERROR"}}, fills=("no day's budget",)),
    Fault("F25", "clocks of running processes are set, by minutes and by a day", 0, 10, step,
          fills=("the clocks were wrong", "turns are dated", "periodic jobs run")),
]  # fmt: skip
