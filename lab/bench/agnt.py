"""`python -m lab.bench.agnt`: envelopes a second of `POST /a2a/v1`, and their times at 400 a second.

The hub is one process on SQLite, with 10,000 venues. An ASGI endpoint with nothing behind it gets the same
envelopes in the same run. The servers share one core, the load has the other one.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from clawbridge.agnt.signing import SigningKeys, read_key, sign_payload, verify_payload
from lab import in_django
from lab.bench import command, hubs, load
from lab.bench.agnt_requests import LISTED, Envelopes, make_kinds
from lab.bench.client import RequestSource
from lab.bench.command import Option, Options, bench, show_progress
from lab.bench.hubs import BenchTarget
from lab.bench.load import AskedServer, LoadRun, cells
from lab.figures import BenchResult

VENUES = 10_000
WARM_UP_S = 1
CONNECTIONS = 32
SIGNED_ROUNDS = 3
VERIFIED = 2_000
ENVELOPES_GOAL, CONFIRMS_GOAL, P95_GOAL_MS, SIGNATURE_GOAL_MS = 400.0, 50.0, 25.0, 0.1
BARE, PING, CONFIRM = "bare ASGI", "ping", "confirm"
SEARCH, LIST = "search, new queries", f"list of {LISTED}"
SENDER = "bench"
COLUMNS = ("p50 ms", "p99 ms", "errors", "server cpu", "web ms/ask")
RATED_COLUMNS = ("p50 ms", "p95 ms", "max ms", "errors")


@dataclass(frozen=True)
class AgntFindings:
    """The figures. `runs`: by kind of envelope; `rated`: at the wanted rate, and the bare endpoint at it.

    `verified_ms`: processor time to verify a signature. `unsigned_ms`, `signed_ms`: of the hub, for a ping of
    each round.
    """

    venues: int
    runs: Mapping[str, LoadRun]
    rated: Mapping[str, tuple[LoadRun, LoadRun]]
    verified_ms: float
    unsigned_ms: Sequence[float]
    signed_ms: Sequence[float]


def measure(options: Options, folder: Path) -> BenchResult:
    """Send envelopes to a hub whose network has many venues."""
    show_progress(f"a network with {options.venues} venues is written")
    with hubs.storages("embedded", folder) as new_storage:
        storage = new_storage()
        keys = in_django.call(storage.env, "lab.bench.seed:seed_network", options.venues)
        with hubs.running(storage) as hub, hubs.baseline(BARE, "bare", folder) as bare:
            return report(_measure(hub.asked()[0], bare, keys, options.venues, options.seconds))


def _measure(
    hub: BenchTarget, bare: BenchTarget, keys: Sequence[Mapping[str, str]], venues: int, seconds: int
) -> AgntFindings:
    kinds = make_kinds(venues)

    def send(
        target: BenchTarget, name: str, requests: Sequence[RequestSource], for_s: float, rate: float | None = None
    ) -> LoadRun:
        """Send `rate` envelopes a second, or each as soon as the one before was answered."""
        asked = [AskedServer(target.port, requests)]
        return load.measure_servers(name, [target.server], asked, CONNECTIONS, for_s, rate=rate)

    def requests_of(kind: str, *, is_signed: bool = False) -> list[RequestSource]:
        intent, make_payload, answered = kinds[kind]
        return [
            Envelopes(key["token"], intent, make_payload, answered, secret=key["secret"] if is_signed else "")
            for key in keys
        ]

    runs = {}
    for name, server, kind in [(BARE, bare, PING), *((kind, hub, kind) for kind in kinds)]:
        send(server, name, requests_of(kind), WARM_UP_S)
        runs[name] = send(server, name, requests_of(kind), seconds)
        show_progress(f"{name}: {runs[name].asks_per_s:.0f} a second")
    rated = {}
    for kind in (PING, SEARCH, LIST):
        run = send(hub, kind, requests_of(kind), seconds, ENVELOPES_GOAL)
        rated[kind] = run, send(bare, BARE, requests_of(PING), seconds, ENVELOPES_GOAL)
        show_progress(f"{kind}, {ENVELOPES_GOAL:.0f} a second: p95 {run.p95_ms:.1f} ms")
    unsigned_ms, signed_ms = [], []
    for number in range(SIGNED_ROUNDS):
        rate = max(1.0, runs[PING].asks_per_s / 2)
        unsigned_ms.append(_cpu_ms(send(hub, PING, requests_of(PING), seconds, rate)))
        signed_ms.append(_cpu_ms(send(hub, PING, requests_of(PING, is_signed=True), seconds, rate)))
        show_progress(
            f"signed, round {number + 1} of {SIGNED_ROUNDS}: {unsigned_ms[-1]:.3f} ms, {signed_ms[-1]:.3f} ms"
        )
    return AgntFindings(venues, runs, rated, _verification_ms(keys[0]["secret"]), unsigned_ms, signed_ms)


def _cpu_ms(run: LoadRun) -> float:
    """Milliseconds of the server's processor time for an envelope.

    Raises:
        RuntimeError: an envelope was not answered: the figure would not be comparable.
    """
    if run.errors:
        raise RuntimeError(f"{run.errors} envelopes were not answered: {run.first_error}")
    return run.web_ms


def _verification_ms(secret: str) -> float:
    """Milliseconds of processor time to verify the signature of one search."""
    signing_key, now_s = read_key(secret), int(time.time())
    payloads = [
        sign_payload({"query": f"quiet {number}", "limit": 10}, key=signing_key, sender=SENDER, at_s=now_s)
        for number in range(VERIFIED)
    ]
    keys, began = SigningKeys(signing_key), time.process_time()
    for payload in payloads:
        verify_payload(payload, keys=keys, sender=SENDER, now_s=now_s)
    return (time.process_time() - began) / VERIFIED * 1000


def report(found: AgntFindings) -> BenchResult:
    """The figures, and whether the goals are met."""
    title = f"Envelopes to a network with {found.venues} venues, {CONNECTIONS} connections, one process on SQLite"
    result = BenchResult("agnt", title)
    bare = found.runs[BARE].asks_per_s or 1
    rows = [
        [name, f"{run.asks_per_s:.0f}", f"{run.asks_per_s / bare:.2f}", *cells([run], *COLUMNS)]
        for name, run in found.runs.items()
    ]
    head = ["envelopes", "a second", "x bare", "p50 ms", "p99 ms", "errors", "cpu", "ms of cpu"]
    result.table("As fast as they are answered", head, rows)
    rated = [run for both in found.rated.values() for run in both]
    rows = [[run.target, f"{run.rate:.0f}", *cells([run], *RATED_COLUMNS)] for run in rated]
    result.table(f"At {ENVELOPES_GOAL:.0f} a second", ["envelopes", "a second", *RATED_COLUMNS], rows)
    added = median(more - less for more, less in zip(found.signed_ms, found.unsigned_ms, strict=True))
    result.notes.append(
        f"processor time of a ping: unsigned {median(found.unsigned_ms):.3f} ms,"
        f" signed {median(found.signed_ms):.3f} ms;"
        f" more within a round: {added:.3f} ms"
    )
    result.note_errors(run.first_error for run in (*found.runs.values(), *rated))
    for kind, (run, _) in found.rated.items():
        p95_ms = float("inf") if run.errors else run.p95_ms  # refusals are fast and would lower the percentile
        result.goal(f"{kind}, {run.rate:.0f} a second: p95 ms", "under", P95_GOAL_MS, p95_ms)
    for kind, run in found.runs.items():
        if kind != BARE:
            wanted = CONFIRMS_GOAL if kind == CONFIRM else ENVELOPES_GOAL
            result.goal(f"{kind}: envelopes a second", "at least", wanted, run.asks_per_s)
    result.goal("verification of a signature: ms", "under", SIGNATURE_GOAL_MS, found.verified_ms)
    result.runs = [asdict(found)]
    return result


if __name__ == "__main__":
    bench("agnt", measure, Option("--venues", VENUES, "venues of the network"), command.seconds(5))
