"""SQL by hand stands in few modules; all others use the ORM (docs/adr/0005)."""

import re

from tests.repository.tracked import ROOT, named, shown

PRODUCT = {"a2a_bridge", "accounts", "agents", "agnt", "evaluations", "gateway", "hub", "kit", "mcp_server"}
PRODUCT |= {"openai_api", "operators", "webhooks"}
MAY = (
    "agents/core/ledger/",
    "a2a_bridge/service/tasks/journal_rows.py",
    "kit/sql.py",
    "kit/concurrent_index.py",
    "kit/full_text.py",
    "agnt/service/intake/rows.py",
)
# Statements that the ledger runs with a turn.
MAY += (
    "a2a_bridge/service/repeats.py",
    "a2a_bridge/service/push_configs.py",
    "gateway/service/session_entries.py",
)
STATEMENT = re.compile(
    r"\.cursor\(|\bRawSQL\(|\.raw\(|\.extra\(select|\bsql\.rows\(|"
    r"\"\s*(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|LOCK TABLE|COPY) [a-z%{*]"
)


def test_other_modules_use_the_orm() -> None:
    ours = [path for path in named("*.py") if path.relative_to(ROOT).parts[0] in PRODUCT]
    others = [path for path in ours if "migrations" not in path.parts and not shown(path).startswith(MAY)]
    found = {shown(path): match[0] for path in others if (match := STATEMENT.search(path.read_text()))}
    assert not found, "use the ORM; what it cannot say belongs in kit/sql.py, with the reason"


def test_a_statement_is_found() -> None:
    assert STATEMENT.search('rows = """\nSELECT id FROM agents_turn')
    assert STATEMENT.search("with connection.cursor() as cursor:")
    assert not STATEMENT.search('parser.add_argument("--agent", help="Select an agent")')
