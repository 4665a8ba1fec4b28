"""I15: logs and tables show no token, secret or question. I6: PostgreSQL logged no deadlock."""

import subprocess

from lab.faults.evidence import Evidence
from lab.faults.report import InvariantRow
from lab.faults.stack import DATABASE

ASKED = b"what did I say?"  # in every question, and in every echo of one


def no_secret_is_shown(found: Evidence) -> InvariantRow:
    """Search all logs, and a dump of all tables, for every token and secret of the run."""
    row = InvariantRow("I15", "no token or secret in any log or table")
    assert found.stack is not None, "no hub"
    tokens = {token.encode(): name for name, token in found.stack.tokens.items()}
    places = {str(log): log.read_bytes() for log in found.stack.logs()} | {"the database": _dump(found)}
    for place, shown in places.items():
        for token, name in tokens.items():
            row.case(token not in shown, f"the token of {name} is in {place}")
    return row


def no_question_is_logged(found: Evidence) -> InvariantRow:
    """Search the logs of the hub's processes for questions and replies."""
    row = InvariantRow("I15", "no question or reply in a log of the hub's processes")
    assert found.stack is not None, "no hub"
    for log in found.stack.logs():
        if log.parent == found.stack.hub.logs:
            lines = [line for line in log.read_bytes().splitlines() if ASKED in line]
            row.case(not lines, f"{log.name}: {len(lines)} times, {lines[:1]}")
    return row


def no_deadlock_is_logged(found: Evidence) -> InvariantRow:
    """Search the log of PostgreSQL for transactions that it ended because of a deadlock."""
    row = InvariantRow("I6", "no transactions wait for each other: no deadlock")
    assert found.stack is not None, "no hub"
    log = (found.stack.folder / "postgres.log").read_text(errors="replace").splitlines()
    row.n = len(found.turns)
    row.violations = [line for line in log if "deadlock detected" in line]
    return row


def _dump(found: Evidence) -> bytes:
    """All rows of all tables, as text."""
    assert found.stack is not None, "no hub"
    dump = found.stack.postgres.tool("pg_dump")
    url = found.stack.postgres.url(DATABASE)
    return subprocess.run([dump, "--data-only", "--inserts", url], capture_output=True, check=True).stdout
