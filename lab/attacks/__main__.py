"""`python -m lab.attacks`: attack a hub from one free account; print what other callers noticed of it."""

import argparse
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.attacks.kinds import KINDS
from lab.attacks.outcome import as_markdown, others_share
from lab.attacks.run import TRIES, run_attacks
from lab.bench.command import show_progress
from lab.bench.meter import LOAD_CORE
from lab.figures import DISTURBED, commit


def main() -> int:
    """Attack, and print the table; the exit code is 1 if an attack starved other callers, or was left out."""
    options = _options()
    kinds, began = options.kinds or list(KINDS), time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {LOAD_CORE})
    with TemporaryDirectory(prefix="attacks-") as folder:
        outcomes = run_attacks(
            kinds,
            Path(folder),
            options.seconds,
            show_progress,
            tries=options.tries,
            minutes=options.minutes,
        )
    left_out = kinds[len(outcomes) :]
    took_min = (time.monotonic() - began) / 60
    starving = [one for one in outcomes if one.flaws]
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    sys.stdout.write(f"{len(starving)} of {len(outcomes)} attacks starved others ({when}, commit {commit()}).\n")
    sys.stdout.write(f"{took_min:.0f} minutes; not tried, for lack of time: {', '.join(left_out) or 'none'}.\n\n")
    sys.stdout.write(as_markdown(outcomes) + "\n")
    if (share := others_share(outcomes)) > DISTURBED:
        sys.stdout.write(f"\nOther programs used up to {share:.0%} of the processors: ratios say little.\n")
    for one in starving:
        sys.stdout.write(f"\n{one.title}: {'; '.join(one.flaws)}\n")
    return 1 if starving or left_out else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m lab.attacks", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[*KINDS, []], help=f"of: {', '.join(KINDS)}")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of each phase (default 5)")
    parser.add_argument("--tries", type=int, default=TRIES, help=f"of one that seems to starve others ({TRIES})")
    parser.add_argument("--minutes", type=float, default=30.0, help="begin nothing after these (default 30)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
