"""The frames to operators are in one table, and each of its codes and frames in docs/reference."""

import re

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.models.choices import Surface, TurnFailure
from agents.transcript.access import NotAllowed
from agents.transcript.mentions import FilesRefused
from agents.transcript.permissions import AlreadyResolved, NoSuchRequest
from hub.descriptions.openapi import OPERATIONS
from operators.surface import api as calls
from operators.surface import socket
from operators.surface.api import CALLS
from operators.wire import errors
from operators.wire.errors import REFUSED, describe_error, failure_text
from tests.repository.test_docs import all_subclasses, page
from tests.repository.tracked import named

OWN = {one for one in vars(errors).values() if isinstance(one, type) and one.__module__ == errors.__name__}
EXAMPLES = [
    (errors.NoSuchRecipient("a/b"), 404, "agent_not_found", "no agent or session @a/b"),
    (errors.NoSuchSession(), 404, "not_found", "no such session"),
]


def test_whatever_the_core_refuses_has_its_words() -> None:
    core = {Denied, *all_subclasses(FilesRefused), NotPublished, Unavailable, NotAllowed}
    core |= {FileGone, AmbiguousPeer, NoSuchTarget, AlreadyResolved, NoSuchRequest}
    own = {one for one in OWN if issubclass(one, Exception)}
    assert set(REFUSED) == core | own


def test_a_refusal_is_told_by_the_table() -> None:
    answers = [(one, describe_error(one)) for one, *_ in EXAMPLES]
    assert [(one, answer.status, answer.code, str(answer)) for one, answer in answers] == EXAMPLES


def test_a_failure_has_its_text() -> None:
    assert "2.5 s" in failure_text(TurnFailure.TIMEOUT, 2.5)
    assert failure_text("deleted", 60) == "it was deleted before it answered"


def test_every_code_has_its_line() -> None:
    section = page("errors.md").partition("## Operators' refusals\n")[2].partition("\n## ")[0]
    documented = dict(re.findall(r"^\| `([^|]+)` \| (\d{3}) \|", section, re.MULTILINE))
    codes = {code: status for codes, status in documented.items() for code in codes.split("`, `")}
    assert codes.pop("request_timeout") == "408"
    assert codes == {code: str(status) for status, code, _ in errors.OTHER_ERRORS.values()}


def test_every_error_frame_and_close_code_has_its_line() -> None:
    section = page("frames.md").partition("### Errors and close codes of /cli\n")[2].partition("\n## ")[0]
    sources = "".join(path.read_text() for path in named("operators/*/*.py"))
    codes = set(re.findall(r"(?:BadOperatorFrame|refuse)\(\"(\w+)\"", sources))
    assert {"auth_failed", "halted", "token_revoked", "bad_frame", "unknown_type"} == codes
    assert all(f"`{code}`" in section for code in codes)
    closes = {socket.POLICY_VIOLATION, socket.SERVICE_RESTART, socket.TRY_AGAIN_LATER}
    assert {str(code) for code in closes} | {"1009", "1011"} == set(
        re.findall(r"^\| (\d{4}) \|", section, re.MULTILINE)
    )
    assert "1000" not in re.findall(r"end\((\d+)\)", sources)


def test_every_call_is_described_and_found() -> None:
    assert all(one in OPERATIONS for one in calls.OPERATIONS)
    for call in CALLS:
        assert [one for one in CALLS if one.path.fullmatch(call.operation.path)] == [call]


def test_every_surface_stands_in_the_table_of_asking() -> None:
    assert set(Surface) <= set(re.findall(r"\| `(\w+)` \|", page("asking.md")))
