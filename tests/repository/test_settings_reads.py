"""No module outside `hub` reads Django's settings: the hub injects them (docs/adr/0106)."""

import ast
from collections.abc import Iterator

from tests.repository.tracked import ROOT, named, shown

OF_AGENTS = {"agents", "connect", "mcp_server", "openai_api"}
PRODUCT = OF_AGENTS | {"a2a_bridge", "accounts", "agnt", "gateway", "kit", "operators", "webhooks"}


def imported(text: str) -> Iterator[str]:
    """The modules, and what is taken from them, that a module imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


def reads_settings(text: str) -> bool:
    """Whether a module imports Django's settings."""
    return "django.conf" in text and any(name.startswith("django.conf") for name in imported(text))


def test_only_the_hub_reads_djangos_settings() -> None:
    ours = [path for path in named("*.py") if path.relative_to(ROOT).parts[0] in PRODUCT]
    found = [shown(path) for path in ours if "migrations" not in path.parts and reads_settings(path.read_text())]
    assert not found, "take the value from the settings.py of the app, which hub/app_settings.py fills"


def test_a_read_is_found() -> None:
    assert reads_settings("from django.conf import settings\n")
    assert reads_settings("import django.conf\n")
    assert not reads_settings("from accounts.settings import get_settings  # not django.conf\n")
