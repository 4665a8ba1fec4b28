"""The short set of the fault suite: the grown hub under load, killed and cut off, and nothing broken."""

import tempfile
from pathlib import Path

import pytest

from faults.report import as_markdown, examples
from faults.run import run
from faults.table import chosen
from tests.faults.test_short_network import HERE as ELSEWHERE

pytestmark = [pytest.mark.slow, pytest.mark.grown]


@pytest.mark.timeout(600)
async def test_no_invariant_breaks_in_the_short_set() -> None:
    todo = [(fault, count) for fault, count in chosen("short") if fault.name not in ELSEWHERE]
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hub-faults-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as somebody else when we are root
        outcome = await run(todo, Path(folder), asks=0, say=said.append)
    assert outcome.asks > 100, said
    assert not outcome.violations, f"{as_markdown(outcome.rows)}\n{examples(outcome.rows)}"
