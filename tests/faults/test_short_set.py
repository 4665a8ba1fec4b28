"""The short set of the fault suite: the grown hub under load, killed and cut off, and nothing broken."""

from pathlib import Path

import pytest

from faults.report import as_markdown, examples
from faults.run import run
from faults.table import chosen

pytestmark = [pytest.mark.slow, pytest.mark.grown]


@pytest.mark.timeout(400)
async def test_no_invariant_breaks_in_the_short_set(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = _open_to_postgres(tmp_path_factory.mktemp("faults"))
    said: list[str] = []
    outcome = await run(chosen("short"), folder, asks=0, say=said.append)
    assert outcome.asks > 100, said
    assert not outcome.violations, f"{as_markdown(outcome.rows)}\n{examples(outcome.rows)}"


def _open_to_postgres(folder: Path) -> Path:
    """PostgreSQL runs as somebody else when we are root, and must reach its data."""
    for above in [folder, *folder.parents[:2]]:
        above.chmod(above.stat().st_mode | 0o055)
    return folder
