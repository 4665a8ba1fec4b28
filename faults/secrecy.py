"""I15: nothing that a hub prints or stores holds a token that it gave out."""

import subprocess

from faults.evidence import Evidence
from faults.report import Row
from faults.stack import DATABASE


def no_secret_is_shown(found: Evidence) -> Row:
    """Every token of the run is looked for in all logs, and in all tables as PostgreSQL shows them."""
    row = Row("I15", "no token in any log or table")
    assert found.stack is not None, "no hub"
    tokens = {token.encode(): name for name, token in found.stack.tokens.items()}
    places = {log.name: log.read_bytes() for log in found.stack.logs()} | {"the database": _dump(found)}
    for place, shown in places.items():
        for token, name in tokens.items():
            row.case(token not in shown, f"the token of {name} is in {place}")
    return row


def _dump(found: Evidence) -> bytes:
    """All rows of all tables, as text."""
    assert found.stack is not None, "no hub"
    dump = found.stack.postgres.program("pg_dump")
    url = found.stack.postgres.url(DATABASE)
    return subprocess.run([dump, "--data-only", "--inserts", url], capture_output=True, check=True).stdout
