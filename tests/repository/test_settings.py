"""A setting is declared once, the page is made from the declarations, and apps read their own (docs/adr/0106)."""

import ast
import re
from collections.abc import Iterator

import pytest

from hub.apps import SETTINGS_OF_APPS
from lab import errors_page, settings_page
from tests.repository.tracked import ROOT, named, shown

OF_AGENTS = {"agents", "clawbridge", "evaluations", "mcp_server", "openai_api"}
OUTSIDE_HUB = OF_AGENTS | {
    "a2a_bridge",
    "accounts",
    "agnt",
    "evaluations",
    "gateway",
    "kit",
    "operators",
    "webhooks",
}
MODULES_OF_APPS = {module.__name__ for module in SETTINGS_OF_APPS}
READ = re.compile(r"\benv\.\w+\(\s*\"([A-Z0-9_]+)\"")
OF_OTHERS = {"XDG_DATA_HOME"}


def imported(text: str) -> Iterator[str]:
    """The modules, and what is taken from them, that a module imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


def reads_settings(text: str) -> bool:
    return "django.conf" in text and any(name.startswith("django.conf") for name in imported(text))


def copies_settings(text: str) -> bool:
    """True if a module imports a constant of an app's `settings.py`: the copy would keep an old value."""
    may = any(module in text for module in MODULES_OF_APPS)  # to parse every file takes seconds
    return may and any(name.rpartition(".")[0] in MODULES_OF_APPS for name in imported(text))


def test_the_pages_say_what_the_declarations_say() -> None:
    assert settings_page.PAGE.read_text() == settings_page.page(), "run `python -m lab.settings_page`"
    assert settings_page.LIMITS_PAGE.read_text() == errors_page.limits_page(), "run `python -m lab.settings_page`"


def test_every_variable_that_is_read_is_declared() -> None:
    read = {name for path in named("*.py") if ours(path.parts) for name in READ.findall(path.read_text())}
    assert {"PORT", "AGENTS_PER_OWNER"} <= read
    assert read - OF_OTHERS == {one.name for one in settings_page.all_declarations()}


def ours(parts: tuple[str, ...]) -> bool:
    """True if a file is of the product."""
    return parts[len(ROOT.parts)] in OUTSIDE_HUB | {"hub"}


def test_a_setting_without_a_text_is_refused() -> None:
    with pytest.raises(ValueError, match="GREETING has no text"):
        list(settings_page.declarations('GREETING = env.text("GREETING", "hello")\nX = 1\n"""of X"""\n'))


def test_a_declaration_makes_its_line() -> None:
    for declared, row in [
        ('env.text("A", "b")\n"""a text"""', "| `A` | `b` | text, or `A_FILE` | a text |"),
        ('env.flag("A", default=True)\n"""on"""', "| `A` | `1` | `0` or `1` | on |"),
        ('env.integer("A", 1_000, least=1)\n"""rows\nkept"""', "| `A` | `1000` | at least 1 | rows kept |"),
        ('env.integer("A", B + 1, most=9)\n"""Default: more\nrows"""', "| `A` | more | 0 to 9 | rows |"),
        ('env.choice("A", "b", ("b", "c"))\n"""which"""', "| `A` | `b` | `b`, `c` | which |"),
    ]:
        assert [one.row for one in settings_page.declarations(f"A = {declared}\n")] == [f"{row}\n"]


def test_only_the_hub_reads_djangos_settings() -> None:
    outside = [path for path in named("*.py") if path.relative_to(ROOT).parts[0] in OUTSIDE_HUB]
    found = [
        shown(path) for path in outside if "migrations" not in path.parts and reads_settings(path.read_text())
    ]
    assert not found, "take the value from the settings.py of the app"


def test_settings_of_apps_are_read_where_they_are() -> None:
    found = [shown(path) for path in named("*.py") if copies_settings(path.read_text())]
    assert found == ["hub/settings.py"], "write `from app import settings`, and read `settings.NAME` in functions"


def test_a_read_is_found() -> None:
    assert reads_settings("from django.conf import settings\n")
    assert reads_settings("import django.conf\n")
    assert not reads_settings("from accounts import settings  # not django.conf\n")
    assert copies_settings("from accounts.settings import SIGNUP\n")
    assert not copies_settings("from accounts import settings\n")
