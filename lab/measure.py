"""`python -m lab.measure`: how large and how finely cut the product is, as one table of figures.

The static figures are read from the syntax tree of the tracked files. Three more are counted while the program
runs: an ask (`lab.bench.calls`), a PATCH and a webhook delivery (`lab.measured_runs`).
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from lab import ROOT
from lab.bench import calls, report, targets
from lab.hub_storage import hub_env, manage
from lab.processes import python, run
from lab.receivers import receiving

PRODUCT = (
    *("a2a_bridge", "accounts", "agents", "agnt", "clawbridge", "connect", "gateway", "hub", "kit", "mcp_server"),
    *("openai_api", "operators", "webhooks"),
)
THIN_LINES = 70
UNNAMED_PEOPLE = ("whoever", "nobody", "somebody", "anybody", "everybody")
METAPHORS = ("whomever", "goodbyes?", "patience", "corked", "estate", "doors?", "houses?")
TEXTS = (".py", ".html", ".js", ".css", ".md", ".txt", ".toml", ".yaml", ".yml", ".sh")
# The user `nobody` of the operating system, as which PostgreSQL runs, and a quoted text of an older release.
NAMES_OF_OTHERS = re.compile(
    r"`nobody[^`\n]*`|postgres://nobody@|getpwnam\(\"nobody\"\)|\bnobody\.pw_|^    nobody = pwd\.", re.MULTILINE
)
IS_SQL = re.compile(r"\s*(SELECT\s|INSERT INTO\s|UPDATE\s+\S+\s+SET\s|DELETE FROM\s|WITH\s+\w+\s+(AS|\())")
# The ledger runs the statements of repeats, push_rows and held_entries with a turn.
SQL_ROOMS = (
    "agents/core/ledger/",
    "a2a_bridge/service/tasks/",
    "a2a_bridge/service/repeats.py",
    "a2a_bridge/service/pushes/push_rows.py",
    "gateway/service/sessions/held_entries.py",
    "kit/sql.py",
    "agnt/service/intake/rows.py",
)
DIRECTIVE = re.compile(r"#\s*(noqa|type:|pragma|!|ruff:|fmt:)")
ASKS = 200
WITHIN_S = 120.0


@dataclass(frozen=True)
class Figure:
    """One line of the table. `names`: what was counted, where it is a list of things. `goal`: at most that."""

    name: str
    value: float
    goal: float | None = None
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Module:
    """One file of the product, not a migration."""

    path: str
    text: str

    @cached_property
    def name(self) -> str:
        """As one imports it."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @cached_property
    def line_count(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    def comment_count(self) -> int:
        """Lines with a comment for readers; directives to tools are none."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(each.type == tokenize.COMMENT and not DIRECTIVE.match(each.string) for each in tokens)


def tracked_paths(root: Path = ROOT) -> list[str]:
    """The files that git tracks or would track; a checkout without git has none."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    return sorted(path for path in set(listed.stdout.split("\0")) if path and (root / path).is_file())


def read_modules(paths: Sequence[str], root: Path = ROOT) -> list[Module]:
    """The product's modules among these files."""
    return [
        Module(path, (root / path).read_text())
        for path in paths
        if path.endswith(".py") and path.split("/")[0] in PRODUCT and "/migrations/" not in path
    ]


def static_figures(root: Path = ROOT) -> list[Figure]:
    """What can be said without running anything."""
    paths = tracked_paths(root)
    modules = read_modules(paths, root)
    lengths = sorted(each.line_count for each in modules if each.line_count > 2)
    texts = {path: (root / path).read_text(errors="replace") for path in paths if path.endswith(TEXTS)}
    code = {path: text for path, text in texts.items() if not path.endswith(".md")}
    docs = {path: text for path, text in texts.items() if path.endswith(".md")}
    comments = sum(each.comment_count() for each in modules) / sum(each.line_count for each in modules) * 100
    outside_hub = [each for each in modules if not each.path.startswith("hub/")]
    return [
        _listed("modules in agents/", [one.name for one in modules if one.path.startswith("agents/")], 123),
        _listed(f"thin modules (one importer, under {THIN_LINES} lines)", thin_modules(modules), 25),
        Figure("modules of the product", len(modules)),
        Figure("lines of a module, median", median(lengths), 130),
        Figure("lines of a module, 95th percentile", lengths[int(len(lengths) * 0.95)], 350),
        Figure("lines with a comment, per cent", round(comments, 2)),
        _counted("unnamed people in code", word_counts(code, UNNAMED_PEOPLE), 0),
        _counted("unnamed people in docs", word_counts(docs, UNNAMED_PEOPLE), 0),
        _counted("metaphors in code", word_counts(code, METAPHORS), 0),
        _counted("metaphors in docs", word_counts(docs, METAPHORS), 0),
        _counted("settings read outside hub", _counts(outside_hub, settings_reads), 0),
        _counted("NotImplementedError raised", _counts(modules, unimplemented_stubs), 0),
        _listed("described* modules", [one.name for one in modules if "/described" in one.path], 0),
        _listed("request guards", [one.name for one in modules if reads_a_body(one)], 1),
        _listed("modules with SQL by hand outside its rooms", hand_written_sql(modules), 0),
    ]


def thin_modules(modules: Sequence[Module]) -> list[str]:
    """Short modules that exactly one other imports or names in a string; `__init__` aside."""
    importers = _importers(modules)
    return [
        f"{one.name} ({one.line_count}) <- {next(iter(importers[one.name]))}"
        for one in modules
        if one.line_count < THIN_LINES and len(importers[one.name]) == 1 and not one.path.endswith("__init__.py")
    ]


def _importers(modules: Sequence[Module]) -> Mapping[str, set[str]]:
    known = {one.name for one in modules}
    found: dict[str, set[str]] = defaultdict(set)
    for one in modules:
        for name in {name for node in one.nodes for name in _names_in(node, known)} & known - {one.name}:
            found[name].add(one.name)
    return found


def _names_in(node: ast.AST, known: set[str]) -> Iterator[str]:
    """What a node may name a module by."""
    match node:
        case ast.Import():
            yield from (each.name for each in node.names)
        case ast.ImportFrom(module=str(module)):
            inner = {f"{module}.{each.name}" for each in node.names}
            yield from inner & known
            if inner - known:
                yield module
        case ast.Constant(value=str(text)):  # a dotted path, as in settings
            yield from (text, text.rpartition(".")[0])


def settings_reads(module: Module) -> int:
    """How often a module reads a setting of Django's `settings`."""
    imports = (node for node in module.nodes if isinstance(node, ast.ImportFrom))
    names = {
        each.asname or each.name
        for node in imports
        if node.module == "django.conf"
        for each in node.names
        if each.name == "settings"
    }
    read = [one.value for one in module.nodes if isinstance(one, ast.Attribute)]
    called = [one.args[0] for one in module.nodes if isinstance(one, ast.Call) and one.args and _is_getattr(one)]
    return sum(isinstance(one, ast.Name) and one.id in names for one in [*read, *called])


def _is_getattr(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "getattr"


def unimplemented_stubs(module: Module) -> int:
    """How often a module raises NotImplementedError."""
    raised = (node.exc for node in module.nodes if isinstance(node, ast.Raise))
    names = (one.func if isinstance(one, ast.Call) else one for one in raised)
    return sum(isinstance(one, ast.Name) and one.id == "NotImplementedError" for one in names)


def reads_a_body(module: Module) -> bool:
    """Whether a module outside kit takes a request's body by itself, and so has its own order of checks.

    It calls `read_body` of `kit.asgi.HttpRequest`, is a parser of DRF, or sets the limit that Django's own reading
    has. These were five: the bridge, operators, `/channel/event`, DRF and Django. AGNT came later: its contract
    has an order of its own, JSON before the key.
    """
    if module.path.startswith(("kit/", "connect/")):
        return False
    return any(
        (isinstance(node, ast.Attribute) and node.attr == "read_body")
        or (isinstance(node, ast.ClassDef) and any(_is_parser(base) for base in node.bases))
        or (isinstance(node, ast.Name) and node.id == "DATA_UPLOAD_MAX_MEMORY_SIZE")
        for node in module.nodes
    )


def _is_parser(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and base.id in ("BaseParser", "JSONParser")


def hand_written_sql(modules: Sequence[Module]) -> list[str]:
    """The modules that hold a statement of SQL, other than the rooms that may."""
    found = []
    for module in modules:
        strings = (one.value for one in module.nodes if isinstance(one, ast.Constant))
        has_sql = any(isinstance(text, str) and IS_SQL.match(text) for text in strings)
        if has_sql and not module.path.startswith(SQL_ROOMS):
            found.append(module.name)
    return found


def word_counts(texts: Mapping[str, str], words: Sequence[str]) -> Counter[str]:
    """How often any of these words stands in each text. This file and the test of the words name them all."""
    pattern = re.compile(rf"\b({'|'.join(words)})\b", re.IGNORECASE)
    here = ("lab/measure.py", "tests/repository/test_plain_words.py")
    read = {path: NAMES_OF_OTHERS.sub("", text) for path, text in texts.items() if path not in here}
    return +Counter({path: len(pattern.findall(text)) for path, text in read.items()})


def _counts(modules: Sequence[Module], count: Callable[[Module], int]) -> Counter[str]:
    return +Counter({one.name: count(one) for one in modules})


def _listed(name: str, names: Sequence[str], goal: float) -> Figure:
    return Figure(name, len(names), goal, names)


def _counted(name: str, counts: Counter[str], goal: float) -> Figure:
    return Figure(name, counts.total(), goal, [f"{where} ({times})" for where, times in counts.most_common()])


def running_figures() -> list[Figure]:
    """What an ask, a PATCH and a delivery run through, in hubs started for it."""
    with TemporaryDirectory(prefix="measure-") as name:
        folder = Path(name)
        env = targets.environment(folder)
        manage(env, "migrate", "--verbosity", "0")
        rest = requests_run(env)
        with calls.counting("embedded", env, folder) as hub:
            ask = hub.cost("hub", "unary", 1, ASKS)
    return [
        Figure("calls of an ask", round(ask.calls), 1000),
        Figure("modules of an ask", ask.modules, 40),
        Figure("functions of an ask", ask.functions, 190),
        *rest,
    ]


def requests_run(env: Mapping[str, str]) -> list[Figure]:
    """The modules and functions of a REST PATCH and of a webhook delivery; `env`: of a hub with all tables."""
    with receiving() as receiver:
        ports = {"WEBHOOK_ALLOW_PRIVATE": "1", "WEBHOOK_PORTS": str(receiver.port)}
        command = python("-m", "lab.measured_runs", receiver.url)
        counted = json.loads(run(command, hub_env({**env, **ports}), folder=ROOT, within_s=WITHIN_S))
    patch, delivery = counted["patch"], counted["delivery"]
    return [
        _listed("modules of a REST PATCH", patch["modules"], 12),
        _listed("functions of a REST PATCH", patch["functions"], 40),
        _listed("modules of a webhook delivery", delivery["modules"], 8),
        Figure("functions of a webhook delivery", len(delivery["functions"]), None, delivery["functions"]),
    ]


def text(figures: Sequence[Figure], *, with_names: bool = False) -> str:
    """The table, and with `with_names` what was counted."""
    rows = [[one.name, f"{one.value:g}", "" if one.goal is None else f"{one.goal:g}"] for one in figures]
    lists = [line for one in figures if with_names and one.names for line in ("", one.name, *_indented(one.names))]
    return "\n".join([report.table(["figure", "now", "at most"], rows), *lists])


def _indented(names: Sequence[str]) -> list[str]:
    return [f"  {name}" for name in names]


def main() -> None:
    """Print every figure of the size and shape of this code base."""
    parser = argparse.ArgumentParser(prog="python -m lab.measure", description=main.__doc__)
    parser.add_argument("--static", action="store_true", help="only what can be said without running a hub")
    parser.add_argument("--names", action="store_true", help="list the modules and functions behind each figure")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    figures = static_figures() + ([] if options.static else running_figures())
    if options.json:
        sys.stdout.write(json.dumps([asdict(one) for one in figures], indent=1) + "\n")
    else:
        sys.stdout.write(text(figures, with_names=options.names) + "\n")


if __name__ == "__main__":
    main()
