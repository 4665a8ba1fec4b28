"""Whatever an agent's request can come to has its words and its frames."""

from collections.abc import Iterator
from typing import get_args

import pytest

from agents.core.ask_starter import AmbiguousPeer, NoSuchTarget
from agents.core.errors import Busy, Cycle, Denied, FileGone, NotPublished, Unavailable
from agents.links.channel import refusals
from agents.links.channel.frames import ProbeRequest, Request
from agents.links.channel.refusals import (
    DENIED_TEXT,
    FAILURE_TEXT,
    denied_text,
    failure_text,
    refusal_text,
    refuse,
)
from agents.models.choices import Failure


def all_denials(parent: type[Denied] = Denied) -> Iterator[type[Denied]]:
    for child in parent.__subclasses__():
        yield child
        yield from all_denials(child)


def test_every_denial_and_failure_has_its_words() -> None:
    assert set(all_denials()) == set(DENIED_TEXT)
    assert set(Failure) == set(FAILURE_TEXT)
    for failure in Failure:
        assert "{" not in failure_text(failure, "alice/helper")
    assert denied_text(Busy(), "alice/helper").startswith("@alice/helper is processing")
    assert failure_text("deleted", "alice/helper") == "@alice/helper was removed"


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (NoSuchTarget(), "there is no @a/{b} that may be asked"),
        (NotPublished(), "there is no @a/{b} that may be asked"),
        (AmbiguousPeer("several"), "several"),
        (FileGone(), refusals.FILE_GONE),
        (Unavailable(), refusals.UNAVAILABLE),
        (Cycle(), "the question came through @a/{b} already, answer without asking it again"),
    ],
)
def test_why_nothing_was_asked_is_said(refusal: Exception, words: str) -> None:
    assert refusal_text(refusal, "a/{b}") == words


@pytest.mark.parametrize("kind", get_args(Request), ids=lambda one: one.__name__)
def test_every_request_can_be_ended_with_nothing(kind: type[Request]) -> None:
    fields = kind.__struct_fields__
    named = {name: "x" for name in ("peer", "handle") if name in fields}
    asked = {"prompt": "?"} if "prompt" in fields else {}
    frames = refuse(kind(correlation_id="c", **named, **asked), "isolated", "no", login="alice")
    assert frames[0].correlation_id == "c"
    assert len(frames) == (1 if named else 2)
    assert getattr(frames[0], "done", None) is (True if kind is ProbeRequest else None)
