"""`python -m lab.faults`: inject faults into a hub under load, and print which invariants held."""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from lab.faults.invariants import as_markdown, examples
from lab.faults.kinds import TABLE, chosen
from lab.faults.run import MANY, RunOutcome, run
from lab.figures import commit

SETS = "\n".join(f"  {fault.name:4} {fault.short:4} {fault.long:5}  {fault.title}" for fault in TABLE.values())
EPILOG = f"""faults, and how often the short and the long set do them:
{SETS}

The table goes to standard output (and to --out), progress and violations to standard error. Exits 1 when an
invariant broke. The folder with the logs of all processes and operations is kept when one did, or with --keep.
"""


def main() -> int:
    """Run the faults and print the table; the exit code is 1 when an invariant was violated."""
    options = _options()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for background jobs
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))  # both end what was started
    folder = Path(tempfile.mkdtemp(prefix="hub-faults-", dir=options.folder))
    folder.chmod(0o755)
    outcome = asyncio.run(run(chosen(options.set), folder, asks=options.asks, minutes=options.minutes))
    table = f"{headline(outcome)}\n\n{as_markdown(outcome.rows)}\n"
    sys.stdout.write(table)
    if options.out:
        Path(options.out).write_text(table)
    if outcome.violations:
        sys.stderr.write(examples(outcome.rows) + "\n")
    if outcome.violations or options.keep:
        sys.stderr.write(f"everything is in {folder}\n")
    else:
        subprocess.run(["rm", "-rf", str(folder)], check=False)
    return 1 if outcome.violations else 0


def headline(outcome: RunOutcome) -> str:
    """The violations, the date, the commit and the faults, in one sentence."""
    done = ", ".join(f"{fault.name} × {count}" for fault, count in outcome.done)
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"{outcome.violations} violations over {outcome.asks:,} faulted asks "
        f"({when}, commit {commit() or 'unknown'}): {done}."
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m lab.faults",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--set", default="short", help="short, long, or names: F1,F3=5 (F3 five times). Default: short"
    )
    parser.add_argument("--asks", type=int, default=0, help="do the faults more often, until so many asks in all")
    parser.add_argument(
        "--minutes", type=float, default=MANY, help="after this, do not go on for the sake of --asks"
    )
    parser.add_argument("--out", help="write the table to this file too")
    parser.add_argument(
        "--folder", help="where to make the run's folder; default: the system's for temporary files"
    )
    parser.add_argument("--keep", action="store_true", help="keep the run's folder")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
