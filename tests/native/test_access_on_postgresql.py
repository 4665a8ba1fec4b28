"""Access, administration, pages and cards on PostgreSQL."""

from pathlib import Path

import pytest

from tests.homes import GrownHomes
from tests.nested import pass_on_postgresql

AGAIN = ["test_access.py", "test_rest_admin.py", "test_rest_agents.py"]
PAGES = ["test_directory_page.py", "test_agent_page.py"]
CARDS = ["test_signing.py", "test_catalog.py"]


@pytest.mark.grown
@pytest.mark.slow
def test_access_and_administration_are_the_same_on_postgresql(grown_homes: GrownHomes, tmp_path: Path) -> None:
    pass_on_postgresql(grown_homes, tmp_path, 503, *(f"tests/native/{name}" for name in AGAIN + PAGES + CARDS))
