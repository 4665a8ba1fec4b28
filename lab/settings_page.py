"""`python -m lab.settings_page` writes the table of docs/reference/settings.md from the declarations of settings,
and with the defaults of the settings that of docs/reference/limits.md (`lab/errors_page.py`).

A declaration is a constant that a function of `kit/env.py` reads, and the text below the constant:

    REPLY_WAIT_S = env.seconds("REPLY_WAIT_S", 60)
    \"\"\"seconds a caller waits for a reply\"\"\"

A text may begin with a line `Default: …`, where the default is no constant or needs words.
"""

import ast
import contextlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

from kit import env
from lab import ROOT
from lab.in_django import call

PAGE = ROOT / "docs" / "reference" / "settings.md"
LIMITS_PAGE = ROOT / "docs" / "reference" / "limits.md"
MODULES = (
    *("hub/environment.py", "accounts/settings.py", "webhooks/settings.py", "agents/settings.py"),
    *("a2a_bridge/settings.py", "gateway/settings.py", "agnt/settings.py", "evaluations/settings.py"),
    "kit/durations.py",
)
FROM_FILES = ("text", "keys", "master_key")  # what `env.text` reads
NO_BOUND = 2**31
COLUMNS = ("Variable", "Default", "Values", "Meaning")
WORDED = "Default: "


@dataclass(frozen=True, slots=True)
class Declaration:
    """One environment variable. `kind`: the function of `kit/env.py` that reads it; `arguments`: its constants."""

    name: str
    kind: str
    arguments: Mapping[str, Any]
    text: str

    @property
    def row(self) -> str:
        """The line of the table."""
        default = self._default()
        if self.text.startswith(WORDED):
            default = self.text.partition("\n")[0].removeprefix(WORDED)
        return table_line((f"`{self.name}`", default, self._values(), self.meaning))

    @property
    def meaning(self) -> str:
        """The text in one line, without that of the default."""
        text = self.text.partition("\n")[2] if self.text.startswith(WORDED) else self.text
        return " ".join(text.split())

    def _default(self) -> str:
        value = self.arguments.get("default", "")
        return "none" if value == "" else f"`{int(value) if isinstance(value, bool) else value}`"

    def _values(self) -> str:
        match self.kind, self.arguments:
            case "choice", {"among": words}:
                return ", ".join(f"`{word}`" for word in words)
            case "read_as", {"wanted": wanted}:
                return str(wanted)
            case "fraction", {"least": least}:
                return f"{least} to 1"
            case "integer", {"least": least, "most": most}:
                return f"at least {least}" if most == NO_BOUND else f"{least} to {most}"
        summary = str(getattr(env, self.kind).__doc__).partition(".")[0]
        values = summary[:1].lower() + summary[1:]
        return f"{values}, or `{self.name}_FILE`" if self.kind in FROM_FILES else values


def page() -> str:
    """The page with the table that the declarations make."""
    return fill_table(PAGE.read_text(), COLUMNS, [one.row for one in all_declarations()])


def all_declarations() -> list[Declaration]:
    """The settings of the hub, in the order of the page."""
    return [one for name in MODULES for one in declarations((ROOT / name).read_text())]


def declarations(source: str) -> Iterator[Declaration]:
    """The settings that a module declares.

    Raises:
        ValueError: a setting has no text.
    """
    for statement, after in pairwise([*ast.parse(source).body, ast.Pass()]):
        for node in ast.walk(statement):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="env"), attr=kind), args=[ast.Constant(str(name)), *_]
                ):
                    match after:
                        case ast.Expr(ast.Constant(str(text))):
                            yield Declaration(name, kind, _arguments(kind, node), text)
                        case _:
                            raise ValueError(f"{name} has no text: write it below, between triple quotes")


def _arguments(kind: str, call: ast.Call) -> Mapping[str, Any]:
    """The arguments of a call by their names, with defaults; those that are no constants are left out."""
    keywords = {str(one.arg): one.value for one in call.keywords}
    bound = inspect.signature(getattr(env, kind)).bind(*call.args, **keywords)
    bound.apply_defaults()
    found = {}
    for name, value in bound.arguments.items():
        with contextlib.suppress(ValueError):
            found[name] = ast.literal_eval(value) if isinstance(value, ast.AST) else value
    return found


def fill_table(page: str, columns: Sequence[str], lines: Iterable[str]) -> str:
    """The text of a page in which the one table with these columns has these lines.

    Raises:
        ValueError: the page has no such table.
    """
    head = f"{table_line(columns)}|{'---|' * len(columns)}\n"
    before, found, after = page.partition(head)
    if not found:
        raise ValueError(f"the page has no table with the columns {', '.join(columns)}")
    return before + head + "".join(lines) + re.sub(r"\A(?:\|.*\n)*", "", after)


def table_line(cells: Iterable[str]) -> str:
    """The line of a table."""
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    with TemporaryDirectory() as folder:
        LIMITS_PAGE.write_text(call({"DATA_DIR": folder}, "lab.errors_page:limits_page"))
