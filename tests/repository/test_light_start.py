"""The modules that the command and an embedded hub import, by number: more start slower and hold more memory.

`python -m lab.bench.start` measures what that costs; `python -X importtime` shows which modules they are. Import
what one deployment needs where it is built: docs/adr/0163.
"""

import os
from pathlib import Path

import pytest

from lab.bench import start
from lab.hub_storage import EmbeddedStorages
from lab.processes import python, run

OF_OTHERS = (
    "celery",
    "daphne",
    "opentelemetry",
    "psycopg",
    "redis",
    "requests",
    "rest_framework.views",
    "stripe",
    "mcp",
)
MAX_OF_MINT_TOKEN = 800
MAX_OF_A_HUB = 1_450
MAX_OF_THE_COMMAND = 180


def check(modules: list[str], most: int) -> None:
    """Limit the number, and name what belongs to other deployments."""
    assert not set(OF_OTHERS) & set(modules)
    assert len(modules) <= most


def test_mint_token_imports_little(embedded_storages: EmbeddedStorages, tmp_path: Path) -> None:
    storage = embedded_storages.new(tmp_path / "data")
    check(start.mint_imports(storage.env), MAX_OF_MINT_TOKEN)


def test_the_command_imports_little_before_it_knows_the_subcommand() -> None:
    names = run(python("-c", "import clawbridge.__main__, sys; print(*sys.modules)"), os.environ, within_s=60)
    modules = names.split()
    assert not {"django", "hub", "agents", "clawbridge.connect", "kit", "httpx2"} & set(modules)
    check(modules, MAX_OF_THE_COMMAND)


@pytest.mark.slow
def test_a_fresh_embedded_hub_imports_little(tmp_path: Path) -> None:
    check(start.hub_imports(tmp_path / "new"), MAX_OF_A_HUB)
