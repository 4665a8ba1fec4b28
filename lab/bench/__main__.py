"""`python -m lab.bench`: measure, and print tables (docs/howto/bench.md)."""

import argparse
import json
import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

from lab import ROOT
from lab.bench import load, memory, profile, report, streams, targets, wrk
from lab.bench.cores import LOAD_CORE, SERVER_CORE
from lab.bench.report import Findings
from lab.bench.targets import Start, Target

CONNECTIONS = (1, 32, 128)
STREAM_CONNECTIONS = 32
FIRST_CHUNKS_A_ROUND = 200
SOCKETS = 1000
STREAMS = 500
WARM_UP_S = 1
RESULTS = ROOT / "lab" / "bench" / "results"


def main() -> None:
    """Measure everything asked for; Ctrl-C ends it and what it started."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {LOAD_CORE})
    if SERVER_CORE == LOAD_CORE:
        _say("this machine has one core: servers and load share it, so only the ratios mean something")
    found = Findings(
        generator="wrk" if wrk.is_there() else "our own generator (apt-get install wrk for a faster one)"
    )
    sockets = memory.room_for(SOCKETS)
    starts: dict[str, Start] = {targets.SDK: partial(targets.sdk, short=options.short_sdk)}
    starts |= {home: partial(targets.hub, home) for home in options.homes}
    try:
        with targets.temporary_folder() as folder:
            _measure_speed(found, starts, folder, options)
            if options.memory:
                for target_name, start in starts.items():
                    _say(f"memory of {target_name}")
                    found.memory.append(memory.measure(start, folder, sockets=sockets, streams=STREAMS))
    except KeyboardInterrupt:
        _say("stopped")
    print(report.text(found))
    if options.json:
        options.json.write_text(json.dumps(asdict(found), indent=1))


def _measure_speed(found: Findings, starts: dict[str, Start], folder: Path, options: argparse.Namespace) -> None:
    with ExitStack() as stack:
        running = [stack.enter_context(start(folder)) for start in starts.values()]
        for target in running:
            load.measure(target, max(CONNECTIONS), WARM_UP_S)
        for number in range(options.rounds):
            found.rounds.append([])
            for connections in CONNECTIONS:
                for target in running:
                    _say(f"round {number + 1} of {options.rounds}: {target.name}, {connections} connections")
                    found.rounds[-1].append(load.measure(target, connections, options.seconds))
            found.stream_rounds.append([])
            for target in running:
                _say(f"round {number + 1} of {options.rounds}: {target.name}, {STREAM_CONNECTIONS} streams")
                run = load.measure(
                    target, STREAM_CONNECTIONS, options.seconds, method="SendStreamingMessage", kind="stream"
                )
                found.stream_rounds[-1].append(run)
            for target in running:
                times = streams.first_chunks_ms(target, FIRST_CHUNKS_A_ROUND)
                found.first_chunks_ms.setdefault(target.name, []).extend(times)
        if options.profile:
            _profile(running)
        for target in running:
            odd = [line for line in target.server.lines if not line.startswith("ready ")]
            for line in odd[:10]:
                _say(f"{target.name} printed: {line}")


def _profile(running: list[Target]) -> None:
    if not profile.is_there():
        _say("no py-spy on the PATH: pip install py-spy")
        return
    for target in running:
        for connections in (1, 32):
            _say(f"profile in {profile.profile(target, connections, RESULTS)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m lab.bench", description="Measure the hub beside an SDK echo server."
    )
    parser.add_argument("--quick", action="store_true", help="one round of 2 s each, and no memory")
    parser.add_argument(
        "--homes",
        default=",".join(targets.DIALECTS),
        help="of embedded, 'embedded 1.0', postgres, 'postgres 1.0' (default: all)",
    )
    parser.add_argument("--rounds", type=int, help="rounds over all targets (default 3)")
    parser.add_argument("--seconds", type=int, help="length of one run (default 4)")
    parser.add_argument(
        "--short-sdk",
        action="store_true",
        help="the SDK answers in one event, its quickest, not in the usual four",
    )
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="leave memory out")
    parser.add_argument(
        "--profile", action="store_true", help="profile each server with py-spy, into lab/bench/results/"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every single run there")
    options = parser.parse_args()
    options.homes = [home for home in options.homes.split(",") if home]
    if unknown := set(options.homes) - set(targets.DIALECTS):
        parser.error(f"no home {', '.join(unknown)}: want {' or '.join(targets.HOMES)}")
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.seconds = options.seconds or (2 if options.quick else 4)
    options.memory = options.memory and not options.quick
    return options


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
