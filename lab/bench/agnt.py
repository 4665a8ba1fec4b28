"""`python -m lab.bench.agnt`: envelopes a second of `POST /a2a/v1`, and their times at half of that.

One process on SQLite, with 10,000 venues; the same envelopes to an ASGI endpoint with nothing behind it, in the
same run. The servers share one core, the load has the other one.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import uvloop

from agnt.wire.signing import SigningKeys, read_key, sign_payload, verify_payload
from lab.bench import load, targets
from lab.bench.agnt_requests import LISTED, Envelopes, make_kinds
from lab.bench.cores import LOAD_CORE, SERVER_CORE
from lab.bench.load import Run
from lab.bench.report import goal, table
from lab.bench.scale import say
from lab.bench.scale_pace import LAST_WITHIN_S, Paced, pace
from lab.bench.targets import Requests
from lab.hub_storage import hub_env, manage
from lab.processes import Program, free_port, printed, python, run

VENUES = 10_000
SECONDS = 5
WARM_UP_S = 1
CONNECTIONS = 32
SIGNED_ROUNDS = 3
VERIFIED = 2_000
CONNECTED_WITHIN_S = 30.0
ENVELOPES_GOAL, CONFIRMS_GOAL, P95_GOAL_MS, SIGNATURE_GOAL_MS = 1_500.0, 400.0, 20.0, 0.1
BARE, PING, CONFIRM = "bare ASGI", "ping", "confirm"
SEARCH, LIST = "search, new queries", f"list of {LISTED}"
SENDER = "bench"


@dataclass(frozen=True)
class Key:
    """An AGNT key and what its sender signs with."""

    token: str
    secret: str


@dataclass(frozen=True)
class Server:
    """A running server to measure."""

    program: Program
    port: int


@dataclass(frozen=True)
class Findings:
    """What one bench measured. `runs`, `paced`: by kind of envelope; `paced`: with the bare endpoint at its rate.

    `verified_ms`: processor time to verify a signature. `unsigned_ms`, `signed_ms`: of the hub, for a ping of
    each round.
    """

    venues: int
    runs: Mapping[str, Run]
    paced: Mapping[str, tuple[Paced, Paced]]
    verified_ms: float
    unsigned_ms: Sequence[float]
    signed_ms: Sequence[float]


def main() -> None:
    """Measure a hub with many venues; print tables and the goals."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.agnt", description=main.__doc__)
    parser.add_argument("--venues", type=int, default=VENUES, help=f"default {VENUES}")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of one run (default {SECONDS})")
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    with targets.temporary_folder() as folder:
        say(f"a network with {options.venues} venues is written")
        with serving(folder, options.venues) as (hub, keys), serving_bare(folder) as bare:
            found = measure(hub, bare, keys, options.venues, options.seconds)
    print(text(found))


@contextmanager
def serving(folder: Path, venues: int) -> Iterator[tuple[Server, list[Key]]]:
    """A hub on SQLite whose network had its venues before it started."""
    env = targets.environment(folder)
    manage(env, "migrate", "--verbosity", "0")
    seeded = json.loads(run(python("-m", "lab.bench.network", str(venues)), hub_env(env)))
    with targets.process("agnt", folder, env) as program:
        yield Server(program, int(env["PORT"])), [Key(**one) for one in seeded]


@contextmanager
def serving_bare(folder: Path) -> Iterator[Server]:
    """The bare endpoint, on the core of the hub."""
    port = free_port()
    command, is_ready = python("-m", "lab.bench.bare_server", str(port)), printed("ready http://")
    with Program(command, folder / "bare.log", core=SERVER_CORE, is_ready=is_ready) as program:
        yield Server(program, port)


def measure(hub: Server, bare: Server, keys: Sequence[Key], venues: int, seconds: int) -> Findings:
    """All figures.

    Raises:
        TimeoutError: a server accepts no connections.
    """
    kinds = make_kinds(venues)

    def requests_of(kind: str, *, is_signed: bool = False) -> list[Requests]:
        intent, make_payload, answered = kinds[kind]
        return [
            Envelopes(key.token, intent, make_payload, answered, secret=key.secret if is_signed else "")
            for key in keys
        ]

    runs = {}
    for name, server, kind in [(BARE, bare, PING), *((kind, hub, kind) for kind in kinds)]:
        load.measure_raw(name, server.program, server.port, requests_of(kind), CONNECTIONS, WARM_UP_S)
        one = load.measure_raw(name, server.program, server.port, requests_of(kind), CONNECTIONS, seconds)
        say(f"{name}: {one.asks_per_s:.0f} a second")
        runs[name] = one
    paced = {}
    for kind in (SEARCH, LIST):
        rate = max(1.0, runs[kind].asks_per_s / 2)
        paced[kind] = (
            measure_paced(hub, requests_of(kind), rate, seconds),
            measure_paced(bare, requests_of(PING), rate, seconds),
        )
        say(f"{kind}, {rate:.0f} a second: p95 {p95(paced[kind][0].took_ms):.1f} ms")
    unsigned_ms, signed_ms = [], []
    for number in range(SIGNED_ROUNDS):
        rate = max(1.0, runs[PING].asks_per_s / 2)
        unsigned_ms.append(measure_cpu_ms(hub, requests_of(PING), rate, seconds))
        signed_ms.append(measure_cpu_ms(hub, requests_of(PING, is_signed=True), rate, seconds))
        say(f"signed, round {number + 1} of {SIGNED_ROUNDS}: {unsigned_ms[-1]:.3f} ms, {signed_ms[-1]:.3f} ms")
    return Findings(venues, runs, paced, measure_verification_ms(keys[0]), unsigned_ms, signed_ms)


def measure_paced(server: Server, requests: Sequence[Requests], rate: float, seconds: int) -> Paced:
    """Envelopes sent `rate` times a second, whether or not those before were answered.

    Raises:
        TimeoutError: the server accepts no connections.
    """

    async def send() -> Paced:
        async with asyncio.timeout(CONNECTED_WITHIN_S + seconds + LAST_WITHIN_S):
            return await pace(requests, server.port, CONNECTIONS, rate, seconds)

    return uvloop.run(send())


def measure_cpu_ms(server: Server, requests: Sequence[Requests], rate: float, seconds: int) -> float:
    """Milliseconds of the server's processor time for an envelope, at this rate.

    Raises:
        RuntimeError: an envelope was not answered: what is counted would not be comparable.
    """
    before_s = server.program.cpu_s()
    sent = measure_paced(server, requests, rate, seconds)
    if sent.errors:
        raise RuntimeError(f"{sent.errors} of {len(sent.took_ms)} envelopes were not answered")
    return (server.program.cpu_s() - before_s) / len(sent.took_ms) * 1000


def measure_verification_ms(key: Key) -> float:
    """Milliseconds of processor time to verify the signature of one search."""
    signing_key, now_s = read_key(key.secret), int(time.time())
    payloads = [
        sign_payload({"query": f"quiet {number}", "limit": 10}, key=signing_key, sender=SENDER, at_s=now_s)
        for number in range(VERIFIED)
    ]
    keys, began = SigningKeys(signing_key), time.process_time()
    for payload in payloads:
        verify_payload(payload, keys=keys, sender=SENDER, now_s=now_s)
    return (time.process_time() - began) / VERIFIED * 1000


def text(found: Findings) -> str:
    """The figures, and whether the goals are met."""
    head = ["as fast as they are answered", "a second", "x bare", "p50 ms", "p99 ms", "errors", "cpu", "ms of cpu"]
    paced_head = ["at half of that", "a second", "p50 ms", "p95 ms", "max ms", "errors"]
    errors = {one.first_error for one in found.runs.values() if one.first_error}
    added = median(more - less for more, less in zip(found.signed_ms, found.unsigned_ms, strict=True))
    signatures = (
        f"processor time of a ping: unsigned {median(found.unsigned_ms):.3f} ms,"
        f" signed {median(found.signed_ms):.3f} ms;"
        f" more within a round, with the row of the used signature: {added:.3f} ms"
    )
    return "\n".join([
        f"Envelopes to a network with {found.venues} venues, {CONNECTIONS} connections, one process on SQLite\n",
        table(head, _run_rows(found.runs)),
        *(f"an error: {error}" for error in sorted(errors)[:5]),
        "",
        table(paced_head, _paced_rows(found.paced)),
        "",
        signatures,
        "\nGoals",
        table(["goal", "wanted", "measured", ""], _goals(found)),
    ])  # fmt: skip


def _run_rows(runs: Mapping[str, Run]) -> list[list[str]]:
    bare = runs[BARE].asks_per_s or 1
    return [
        [
            name,
            f"{one.asks_per_s:.0f}",
            f"{one.asks_per_s / bare:.2f}",
            f"{one.p50_ms:.1f}",
            f"{one.p99_ms:.1f}",
            str(one.errors),
            f"{one.server_cpu:.0%}",
            f"{1000 * one.server_cpu / (one.asks_per_s or 1):.3f}",
        ]
        for name, one in runs.items()
    ]


def _paced_rows(paced: Mapping[str, tuple[Paced, Paced]]) -> list[list[str]]:
    return [
        [
            name,
            f"{one.rate:.0f}",
            f"{median(one.took_ms or [0]):.1f}",
            f"{p95(one.took_ms):.1f}",
            f"{max(one.took_ms or [0]):.1f}",
            str(one.errors),
        ]
        for kind, both in paced.items()
        for name, one in zip((kind, BARE), both, strict=True)
    ]


def _goals(found: Findings) -> list[list[str]]:
    rows = [
        goal(
            f"{kind}, {one.rate:.0f} a second: p95 ms",
            "under",
            P95_GOAL_MS,
            float("inf") if one.errors else p95(one.took_ms),  # a refusal is quick
        )
        for kind, (one, _) in found.paced.items()
    ]
    for kind, run_of_kind in found.runs.items():
        if kind != BARE:
            wanted = CONFIRMS_GOAL if kind == CONFIRM else ENVELOPES_GOAL
            rows.append(goal(f"{kind}: envelopes a second", "at least", wanted, run_of_kind.asks_per_s))
    rows.append(goal("verification of a signature: ms", "under", SIGNATURE_GOAL_MS, found.verified_ms))
    return rows


def p95(took: Sequence[float]) -> float:
    """The 95th percentile; infinite without any."""
    return sorted(took)[len(took) * 95 // 100] if took else float("inf")


if __name__ == "__main__":
    main()
