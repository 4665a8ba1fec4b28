"""Every address, frame, setting and refusal has its line in docs/reference, and no link leads nowhere."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import click
import msgspec

from a2a_bridge.wire import errors as bridge_errors
from a2a_bridge.wire.versions import DIALECTS
from accounts.error_responses import CODES, FORBIDDEN_ORIGIN
from accounts.errors import SignInRefused
from accounts.models import Credential
from accounts.tokens import PREFIXES
from agents.api.usage import OPEN_REASON
from agents.links import frame_socket
from agents.links.channel import connection, frames
from clawbridge import VERSION
from clawbridge.__main__ import clawbridge
from clawbridge.terminal import ExitCode
from hub.descriptions.openapi import OPERATIONS
from kit import jsonrpc
from operators.wire.frames import FROM_OPERATOR, TO_OPERATOR
from tests.repository.tracked import ROOT, named, shown
from tests.routes import routes

REFERENCE = ROOT / "docs" / "reference"
ERROR_FRAMES = re.compile(r"(?:BadChannelFrame|refuse)\(\s*\"(\w+)\"|super\(\).__init__\(\"(\w+)\"")
COMMANDS = ("hub/management/commands/*.py",)
CONSTANT = re.compile(r"[A-Z_]+\Z")


def page(name: str) -> str:
    return (REFERENCE / name).read_text()


def rows(name: str) -> dict[str, str]:
    """The table rows of a page by the code in their first column."""
    return rows_of(page(name))


def rows_of(text: str) -> dict[str, str]:
    found = re.findall(r"^\| `([^`]+)`(.*)\|$", text, re.MULTILINE)
    return {first.partition(" ")[0]: rest for first, rest in found}


def check_lines(wanted: Iterable[str], name: str) -> None:
    missing = sorted(word for word in wanted if f"`{word}`" not in page(name))
    assert not missing, f"docs/reference/{name} has no line on {missing}"


def all_subclasses(parent: type) -> Iterator[type]:
    for child in parent.__subclasses__():
        yield child
        yield from all_subclasses(child)


def error_codes() -> dict[str, int]:
    """The codes of JSON-RPC errors by the name of their constant."""
    constants = {**vars(jsonrpc), **vars(bridge_errors)}
    return {
        name: value
        for name, value in constants.items()
        if CONSTANT.match(name) and type(value) is int and -32800 < value < -32000
    }


def test_every_method_has_its_line() -> None:
    for dialect in DIALECTS:
        check_lines(dialect.methods, "methods.md")


def test_every_error_code_and_no_other_has_its_line() -> None:
    assert len(error_codes()) >= 12
    told = re.findall(r"^\| (-\d+) \| `(\w+)` \|", page("errors.md"), re.MULTILINE)
    assert {name: int(code) for code, name in told} == error_codes()


def test_the_reason_of_open_turns_has_its_line() -> None:
    check_lines([OPEN_REASON], "errors.md")


def test_every_rest_error_has_its_line() -> None:
    lines = rows("errors.md")
    assert {*CODES.values(), FORBIDDEN_ORIGIN} <= lines.keys()
    for status, code in CODES.items():
        assert f"| {status} |" in f"{lines[code]}|", f"{code} is {status}"


def test_every_frame_has_its_line_and_its_fields_are_named() -> None:
    of_channel, of_cli = map(rows_of, page("frames.md").split("## Frames of /cli"))
    assert not unnamed_fields([*frames.FROM_AGENT.values(), *frames.TO_AGENT], of_channel)
    assert not unnamed_fields([*FROM_OPERATOR.values(), *TO_OPERATOR], of_cli)


def unnamed_fields(types: Iterable[type[msgspec.Struct]], lines: dict[str, str]) -> list[str]:
    """The fields that the line of their frame does not name; a frame without a line is a KeyError."""
    return [
        f"{frame.__name__}.{field}"
        for frame in types
        for field in frame.__struct_encode_fields__
        if f"`{field}`" not in lines[str(frame.__struct_config__.tag)]
    ]


def test_every_error_frame_has_its_line() -> None:
    sources = named("agents/links/channel/*.py", "hub/runtime.py", "hub/polling.py")
    codes = {code for path in sources for pair in ERROR_FRAMES.findall(path.read_text()) for code in pair if code}
    assert {"auth_failed", "token_revoked", "bad_frame", "unknown_chat", "reply_too_large"} <= codes
    assert codes <= rows("frames.md").keys()


def test_every_bye_and_close_code_has_its_line() -> None:
    sources = "".join(
        path.read_text() for path in named("agents/links/channel/*.py", "hub/runtime.py", "hub/polling.py")
    )
    check_lines(re.findall(r"(?:bye|Bye\(reason)=\"(\w+)\"", sources), "frames.md")
    codes = {frame_socket.NORMAL, frame_socket.GOING_AWAY, connection.POLICY_VIOLATION, connection.SERVICE_RESTART}
    assert {str(code) for code in codes} <= set(re.findall(r"^\| (\d{4}) \|", page("frames.md"), re.MULTILINE))


def test_every_make_target_has_its_line() -> None:
    targets = re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"run", "test"} <= set(targets)
    check_lines([f"make {target}" for target in targets], "commands.md")


def test_every_command_and_option_has_its_line() -> None:
    for path in named(*COMMANDS):
        if path.stem != "__init__":
            assert f"### `{path.stem}`\n" in page("commands.md"), f"manage.py {path.stem}"
    sources = "".join(path.read_text() for path in named(*COMMANDS, "clawbridge/connect/options.py"))
    told = {word for code in re.findall(r"`(--[^`]+)`", page("commands.md")) for word in code.split()}
    options = set(re.findall(r"add_argument\(\s*\"(--[a-z-]+)\"", sources))
    assert {"--login", "--exec"} <= options
    assert options <= told


def test_every_command_of_clawbridge_and_each_exit_code_has_its_line() -> None:
    told = {word for code in re.findall(r"`(--[^`]+)`", page("commands.md")) for word in code.split()}
    headings = "".join(re.findall(r"^### .+$", page("commands.md"), re.MULTILINE))
    for name, command in clawbridge.to_info_dict(click.Context(clawbridge))["commands"].items():
        assert f"`clawbridge {name}`" in headings
        options = {one["opts"][-1] for one in command["params"] if one["param_type_name"] == "option"}
        assert options <= told, f"docs/reference/commands.md: options of clawbridge {name}"
    lines = [f"| {code.value} | `{code.name}` |" for code in ExitCode]
    assert [line for line in lines if line not in page("commands.md")] == []


def api_calls() -> Iterator[str]:
    """`VERB /address` of everything under /api/v1."""
    for address, pattern in routes():
        if address.startswith("/api/v1/"):
            view = getattr(pattern.callback, "view_class", None)  # a plain view answers GET
            verbs = [verb for verb in ("get", "post", "put", "patch", "delete") if hasattr(view, verb)] or ["get"]
            yield from (f"{verb.upper()} {without_names(address)}" for verb in verbs)
    for one in OPERATIONS:
        if one.path.startswith("/api/v1/"):
            yield f"{one.method.upper()} {without_names(one.path)}"


def without_names(address: str) -> str:
    return re.sub(r"<[^>]*>|\{[^}]*\}", "{}", address)


def test_every_rest_call_has_its_line() -> None:
    told = set(map(without_names, re.findall(r"^\| `([A-Z]+ /api/v1/[^`]*)` \|", page("rest.md"), re.MULTILINE)))
    assert told == set(api_calls())


def test_every_kind_of_token_has_its_line() -> None:
    lines = rows("tokens.md")
    for kind in Credential.Kind:
        assert PREFIXES[kind] in lines[kind.value]


def test_the_changelog_knows_the_version() -> None:
    assert f"## [{VERSION}] - " in (ROOT / "CHANGELOG.md").read_text()


# Links.

PAGES = named("*.md")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|^(?: {4}|\t)[^\n]*$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_lead_somewhere() -> None:
    assert len(PAGES) > 100
    assert not [f"{shown(path)}: {link}" for path in PAGES for link in broken_links(path)]


def broken_links(path: Path) -> Iterator[str]:
    """The relative links of a page whose file or heading is absent."""
    for link in LINK.findall(CODE.sub("", path.read_text())):
        if "://" in link or link.startswith("mailto:"):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        has_anchor = bool(anchor) and target.suffix == ".md"
        if not target.exists() or (has_anchor and anchor not in anchors(target.read_text())):
            yield link


def test_docs_named_in_the_code_exist() -> None:
    for path in named("*.py", "Makefile"):
        for name in re.findall(r"(?<!/)docs/[a-z]+/[\w./-]*\w", path.read_text()):
            found = (ROOT / name).exists() or list(ROOT.glob(f"{name}*.md"))
            assert found, f"{shown(path)} names {name}"


def test_files_named_for_contributors_exist() -> None:
    pages = [ROOT / "CONTRIBUTING.md", *named("docs/architecture.md", "docs/adr/*.md")]
    for path in pages:
        text = path.read_text()
        made = re.findall(r"Create `([^`]+)`", text)  # by the steps of recipes
        for name in re.findall(r"`([a-z_0-9]+/[\w./-]+\.(?:py|html|css|js))`", text):
            known = [one for one in made if one.endswith(name)]
            found = known or (ROOT / name).exists() or name.startswith(("dist/", "v03/"))
            assert found, f"{shown(path)} names {name}"


def test_every_decision_has_its_four_headings_and_is_listed() -> None:
    listed = (ROOT / "docs" / "adr" / "README.md").read_text()
    for path in named("docs/adr/[0-9]*.md"):
        headings = re.findall(r"^## (.+)$", path.read_text(), re.MULTILINE)
        assert headings == ["Context", "Decision", "Cost", "Revisit"], shown(path)
        assert 10 <= len(path.read_text().splitlines()) <= 40, shown(path)
        assert f"({path.name})" in listed, shown(path)


def test_every_refused_sign_in_has_its_line() -> None:
    codes = {refused.code for refused in (SignInRefused, *all_subclasses(SignInRefused))}
    assert codes <= rows("errors.md").keys()


def test_every_attack_names_a_test_that_exists() -> None:
    tests = "".join(path.read_text() for path in named("tests/*/test_*.py"))
    pages = (ROOT / "docs/topics/security.md", ROOT / "SECURITY.md")
    told = [re.findall(r"`(test_\w+)`", path.read_text()) for path in pages]
    assert len(told[0]) > 30
    assert len(told[1]) > 10
    assert not [name for name in chain(*told) if f"def {name}(" not in tests]
