"""What logs show. I15: no token or secret that the hub gave out, no question. I6: no circle of transactions."""

import subprocess

from lab.faults.evidence import Evidence
from lab.faults.report import Row
from lab.faults.stack import DATABASE

ASKED = b"what did I say?"  # in every question, and in every echo of one
PRINTING = ("web-", "worker-", "beat-")


def no_secret_is_shown(found: Evidence) -> Row:
    """Every token and secret of the run is looked for in all logs, and in all tables as PostgreSQL shows them."""
    row = Row("I15", "no token or secret in any log or table")
    assert found.stack is not None, "no hub"
    tokens = {token.encode(): name for name, token in found.stack.tokens.items()}
    places = {log.name: log.read_bytes() for log in found.stack.logs()} | {"the database": _dump(found)}
    for place, shown in places.items():
        for token, name in tokens.items():
            row.case(token not in shown, f"the token of {name} is in {place}")
    return row


def no_question_is_logged(found: Evidence) -> Row:
    """Of no ask the hub's own processes print what was asked or answered."""
    row = Row("I15", "no question or reply in a log of the hub's processes")
    assert found.stack is not None, "no hub"
    for log in found.stack.logs():
        if log.name.startswith(PRINTING):
            lines = [line for line in log.read_bytes().splitlines() if ASKED in line]
            row.case(not lines, f"{log.name}: {len(lines)} times, {lines[:1]}")
    return row


def no_deadlock_is_logged(found: Evidence) -> Row:
    """PostgreSQL never had to fail a transaction, of so many asks and their ends, to break a circle of locks."""
    row = Row("I6", "no transactions wait for each other: no deadlock")
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
