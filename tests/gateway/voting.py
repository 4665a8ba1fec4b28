"""A program that votes on a proposal as many members at one moment, each in a thread; several run at once.

Run against a hub's database: `python -m tests.gateway.voting`. It prints `ready`, reads one line of JSON (`owner`,
`key`, `names`), approves as each of the names, and prints how often each answer came and how many decisions it
sent.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import django

django.setup()

from django.db import connection  # noqa: E402

from agents.transcript.announcements import AddressedMessage, SurfaceMessage, set_carrier  # noqa: E402
from gateway.models import Vote  # noqa: E402
from gateway.service.proposals import cast_vote  # noqa: E402
from gateway.wire.errors import FrameRefused  # noqa: E402

THREADS = 10
LOCK_WAIT_S = 60  # 20 threads share one writer, beside other tests


def approve(owner_id: int, key: str, name: str) -> str:
    """The state after the vote of a member, or the reason why it is refused."""
    try:
        return cast_vote(owner_id, (key,), Vote(voter=name, vote="approve")).state
    except FrameRefused as refused:
        return refused.reason


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """See above."""
    decisions: list[str] = []

    def note(addressed: Sequence[AddressedMessage]) -> None:
        for process_id, message in addressed:
            if isinstance(message, SurfaceMessage) and b'"type_name":"decision"' in bytes(message.body):
                decisions.append(process_id)

    set_carrier(note)
    if connection.vendor == "sqlite":
        connection.settings_dict["OPTIONS"]["timeout"] = LOCK_WAIT_S  # of the connections of all threads
    say("ready")
    asked = json.loads(sys.stdin.readline())
    with ThreadPoolExecutor(THREADS) as threads:
        states = threads.map(lambda name: approve(asked["owner"], asked["key"], name), asked["names"])
        answers = Counter(states)
    say(json.dumps({"answers": answers, "decisions": len(decisions)}))


if __name__ == "__main__":
    main()
