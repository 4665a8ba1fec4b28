"""A program that calls a venue many times at one moment, each in a thread; several run at once.

Run against a hub's database: `python -m tests.agnt.breaker_calls`. It prints `ready`, reads one line of JSON
(`network`, `venue`, `calls`), and prints how many calls probed, passed and were refused.
"""

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import django

django.setup()

from agnt.client.breakers import CircuitOpen  # noqa: E402
from agnt.service.asks.breakers import StoredBreakers, VenueKey  # noqa: E402
from agnt.service.metrics import AgntCounts  # noqa: E402

BREAKERS = StoredBreakers(AgntCounts())


def call(key: VenueKey) -> str:
    """What became of a call."""
    try:
        return "probe" if BREAKERS.enter(key).is_probe else "passed"
    except CircuitOpen:
        return "refused"


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """See above."""
    say("ready")
    asked = json.loads(sys.stdin.readline())
    key = VenueKey(asked["network"], asked["venue"])
    with ThreadPoolExecutor(asked["calls"]) as threads:
        say(json.dumps(Counter(threads.map(lambda _: call(key), range(asked["calls"])))))


if __name__ == "__main__":
    main()
