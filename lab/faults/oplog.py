"""Every operation of the run as a line of JSON: a request and its answer. The checker reads the lines.

A line has `at` (seconds since 1970) and `op`:

- `ask`: one request of a caller. `kind` (see `request_kinds`), `caller`, `agent` (handle), `url` (number of the
  web process), `message_id`, `nonce`, `keyed` (it had an Idempotency-Key), `took_s`, `status` (HTTP, 0 without an
  answer), `outcome` (see `request_kinds.Answer`), `text`, `task_id`, `events` (numbers of a stream's events, as
  they came), `cuts` (how often it was broken off on purpose), `attempt` (0 is the first), `fault` (what was being
  done).
  A fault's own asks are not `by_load`.
- `confirm`: one envelope of a program that books. `nonce` (the slot), `venue`, `url`, `attempt`, `outcome`,
  `status`, `text` (the code of an error), `booking_id`, `took_s`, `began_in`. `confirmed`: the last of its
  attempts is over.
- `order`, `cancel`: the agent of a venue was told to book, or to cancel. `booking_id`, `nonce`, `chat_id`,
  `agent`.
- `letter`: a message for an agent that may be away. `nonce`, `owner`, `url`, `is_put` (into the inbox, even if the
  agent is there), `outcome` (`stored` is confirmed by the hub; `sent` at once, which the hub does not confirm),
  `text`. `received`: such a message came. `nonce`, `owner`, `socket` (number of the recipient's connection), `id`.
- `prompt`: an agent was asked. `agent`, `nonce`, `chat_id`, `socket` (number of its connection).
- `miss`: an agent came and was not welcomed. `agent` (its name), `url`, `why`.
- `keyed`: the last of a keyed ask's attempts is over. `nonce`, `kind`, `attempts`, `outcome`, `status`, `text`.
- `peek`, `reread`, `read`: a caller asked for another's task; read its own again; was refused on the way to its
  task's end. `nonce`, `task_id`, `outcome`, `status`, `code`, `text`, `retry_after` (see `request_kinds.Answer`).
- `webhook`: a receiver got a request. `event_id`, `type`, `digest` (of the body), `is_signed`.
- `held`: a worker was killed while it sent this delivery. `event_id`.
- `start`, `death`: of a web process. `process` (its id in the hub's own table), `url`, `how`.
- `pause`: a web process was stopped, and continues now. `process`, `url`, `took_s`.
- `seen`: a fault measured something. `fault`, `what`, `ok`, `detail`.
"""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]
REQUESTS = ("ask", "confirm", "letter")


class OpLog:
    """Appends lines to a file. `fault`: the name of the fault that is injected now, which each line has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fault = ""
        self.asks = 0  # requests of callers that were sent
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()  # receivers of webhooks are threads

    def write(self, op: str, **fields: Any) -> None:
        """Add one operation, with the time."""
        line = json.dumps({"at": time.time(), "op": op, "fault": self.fault, **fields})
        with self._lock:
            self.asks += op in REQUESTS and fields["outcome"] != "unsent"
            self._file.write(line + "\n")

    def flush(self) -> None:
        """Write buffered lines to the file."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read(path: Path) -> Iterator[Line]:
    """The lines of a log, in order."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
