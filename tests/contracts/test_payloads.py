"""Payloads that an agent may send besides text, and those that are refused; without a socket."""

import base64
import json
from typing import Any, cast

import pytest

from agents.core.post import ExtraPiece, Final, PostedChunk
from agents.links.channel import frames
from agents.links.channel.frames import BadChannelFrame
from agents.links.channel.payloads import MAX_TEXT_BYTES, TaskArtifact, kept_of
from agents.links.channel.prompts import LATE_REPLY_S, TooLarge
from agents.transcript.pieces import MAX_PIECES, MAX_REPLY_BYTES, ArtifactPiece, Part, StatusNote
from tests.contracts.test_channel_protocol import AskedAgent, event, hear, prompt, said, waiting


@pytest.fixture
def asked() -> AskedAgent:
    return waiting()


def status(asked: AskedAgent, state: str, text: object = "words", **more: object) -> list[Any]:
    return list(said(asked, "task_status", chatId="c", state=state, text=text, **more))


def artifact(asked: AskedAgent, *parts: object, **more: object) -> list[Any]:
    payload = {"chatId": "c", "artifactId": "a1", "parts": parts or [{"text": "x"}]} | more
    return list(said(asked, "task_artifact", **payload))


def refused(kind: str, **payload: object) -> str:
    """The reason why a frame is refused; the chat must stay open."""
    asked = waiting()
    with pytest.raises(BadChannelFrame) as bad:
        hear(asked, event(kind, chatId="c", **payload))
    assert bad.value.error.code == "bad_frame"
    assert not isinstance(bad.value, TooLarge)
    assert said(asked, "reply", chatId="c", text="so") == [Final("c", 0, "so")]
    return bad.value.error.message


def test_notes_artifacts_and_chunks_are_numbered_together(asked: AskedAgent) -> None:
    assert status(asked, "working", "reading") == [ExtraPiece("c", 0, StatusNote("reading"))]
    assert said(asked, "reply_chunk", chatId="c", text="a") == [PostedChunk("c", 1, "a")]
    assert artifact(asked) == [ExtraPiece("c", 2, ArtifactPiece("a1", (Part(text="x"),)))]
    assert said(asked, "reply_chunk", chatId="c", text="", done=True) == [Final("c", 3)]


def test_any_other_state_ends_the_reply(subtests: pytest.Subtests) -> None:
    for state, reason in [
        ("input_required", "input_required"),
        ("auth_required", "auth_required"),
        ("completed", ""),
        ("failed", "agent_failed"),
        ("rejected", "rejected"),
    ]:
        with subtests.test(state=state):
            asked = waiting()
            assert status(asked, state) == [Final("c", 0, "words", reason)]
            with pytest.raises(BadChannelFrame, match="unknown_chat"):
                status(asked, state)


def test_completed_without_words_leaves_the_reply_to_its_chunks(asked: AskedAgent) -> None:
    said(asked, "reply_chunk", chatId="c", text="a")
    assert said(asked, "task_status", chatId="c", state="completed") == [Final("c", 1)]


def test_an_artifact_of_every_kind_of_part_comes_as_it_was_sent(asked: AskedAgent) -> None:
    parts = [
        {"text": "t", "mediaType": "text/markdown"},
        {"raw": "YWI=", "filename": "a.txt"},
        {"url": "https://files.example/x?y=1", "metadata": {"n": [1]}},
        {"data": {"deep": [None, 1.5, "é"]}},
        {"data": None},
    ]
    [one] = artifact(asked, *parts, name="n", description="d", metadata={"k": 1}, lastChunk=True)
    assert one.piece == ArtifactPiece(
        artifact_id="a1",
        parts=(
            Part(text="t", media_type="text/markdown"),
            Part(raw="YWI=", filename="a.txt"),
            Part(url="https://files.example/x?y=1", metadata={"n": [1]}),
            Part(data={"deep": [None, 1.5, "é"]}),
            Part(data=None),
        ),
        name="n",
        description="d",
        metadata={"k": 1},
        last_chunk=True,
    )


def test_what_is_no_part_is_refused_and_the_chat_stays_open() -> None:
    for part in [
        {},
        {"mediaType": "text/plain"},
        {"text": "a", "data": 1},
        {"text": "a", "raw": "YWI="},
        {"text": 7},
        {"text": None},
        {"text": "a\0b"},
        {"text": "\ud800"},
        {"data": {"\0": 1}},
        {"data": ["\udfff"]},
        {"data": {"a": "b\0"}},
        {"raw": "YWI"},
        {"raw": "YW-_"},
        {"raw": "YWI=\n"},
        {"raw": "YWI=YWI="},
        {"raw": "é"},
        {"raw": ["YWI="]},
        {"url": ""},
        {"url": "/etc/passwd"},
        {"url": "file:///etc/passwd"},
        {"url": "javascript:alert(1)"},
        {"url": "//files.example/x"},
        {"url": "http://"},
        {"url": "http://[::1"},
        {"url": "https://files.example/a b"},
        {"url": "https://files.example/\r\nx"},
        {"url": "https://files.example:0/"},
        {"url": "https://files.example/" + "x" * 2048},
        {"text": "a", "metadata": 7},
        {"text": "a", "metadata": {"k": "\0"}},
        {"text": "a", "filename": "x" * 1025},
        {"text": "a", "mediaType": 5},
        {"data": json.loads("[" * 70 + "]" * 70)},
        "text",
        7,
        None,
    ]:
        assert refused("task_artifact", artifactId="a1", parts=[part]), repr(part)[:40]


def test_what_is_no_artifact_is_refused_and_the_chat_stays_open() -> None:
    for more in [
        {"parts": []},
        {"parts": [{"text": "x"}] * 101},
        {"parts": {"text": "x"}},
        {"parts": None},
        {"artifactId": ""},
        {"artifactId": "x" * 65},
        {"artifactId": "a b"},
        {"artifactId": "a1\n"},
        {"artifactId": "../a"},
        {"artifactId": "é"},
        {"artifactId": 7},
        {"artifactId": "reply-1"},
        {"artifactId": "reply-"},
        {"append": "yes"},
        {"append": True},
        {"lastChunk": 1},
        {"name": "x" * 1025},
        {"name": "\0"},
        {"description": "x" * 4097},
        {"metadata": []},
        {"metadata": {"k": "\ud800"}},
    ]:
        payload: dict[str, object] = {"artifactId": "a1", "parts": [{"text": "x"}]}
        assert refused("task_artifact", **(payload | more)), repr(more)[:60]


def test_what_is_no_status_is_refused_and_the_chat_stays_open() -> None:
    for payload in [
        {},
        {"state": "working"},
        {"state": "working", "text": " \n"},
        {"state": "working", "text": 7},
        {"state": "working", "text": "x" * (MAX_TEXT_BYTES + 1)},
        {"state": "working", "text": "é" * (MAX_TEXT_BYTES // 2 + 1)},
        {"state": "working", "text": "a\0"},
        {"state": "working", "text": "\ud800"},
        {"state": "working", "text": "a", "metadata": "m"},
        {"state": "working", "text": "a", "metadata": {"m": "\0"}},
        {"state": "input_required"},
        {"state": "input_required", "text": ""},
        {"state": "auth_required", "text": "\t"},
        {"state": "failed", "text": "x" * (MAX_TEXT_BYTES + 1)},
        {"state": "rejected", "text": None},
        {"state": "canceled", "text": "a"},
        {"state": "WORKING", "text": "a"},
        {"state": 3, "text": "a"},
        {"state": None, "text": "a"},
    ]:
        assert refused("task_status", **payload), repr(payload)[:50]


def test_a_payload_that_is_no_object_is_refused(subtests: pytest.Subtests) -> None:
    for payload in ["7", "[]", "null", '"x"', '{"chatId":"c","chatId":"c"}', '{"chatId":NaN}']:
        for kind in ["task_status", "task_artifact"]:
            with subtests.test(kind=kind, payload=payload):
                asked = waiting()
                frame = f'{{"type":"chat_event","eventType":"{kind}","payload":{payload}}}'
                with pytest.raises(BadChannelFrame):
                    hear(asked, cast(frames.ChatEvent, frames.decode(frame)))
                assert said(asked, "reply", chatId="c", text="so")


def test_a_foreign_chat_is_unknown(asked: AskedAgent) -> None:
    for kind in ["task_status", "task_artifact"]:
        payload = {"chatId": "other", "state": "working", "text": "x", "artifactId": "a", "parts": [{"text": "x"}]}
        with pytest.raises(BadChannelFrame, match="unknown_chat"):
            said(asked, kind, **payload)


def test_parts_are_appended_until_the_last(asked: AskedAgent) -> None:
    artifact(asked)
    [more] = artifact(asked, append=True)
    assert (more.piece.append, more.piece.last_chunk) == (True, False)
    artifact(asked, append=True, lastChunk=True)
    with pytest.raises(BadChannelFrame, match="bad_frame"):
        artifact(asked, append=True)
    artifact(asked)  # anew
    assert artifact(asked, append=True)


def test_an_artifact_of_another_reply_is_not_there_to_append_to(asked: AskedAgent) -> None:
    artifact(asked)
    asked.prompts.begin(prompt("d"))
    with pytest.raises(BadChannelFrame, match="bad_frame"):
        artifact(asked, append=True, chatId="d")


def test_pieces_of_all_kinds_count_toward_the_cap(asked: AskedAgent) -> None:
    for _ in range(MAX_PIECES // 2):
        status(asked, "working", "x")
        said(asked, "reply_chunk", chatId="c", text="x")
    with pytest.raises(TooLarge) as large:
        artifact(asked)
    assert asked.reports_of(asked.prompts.too_large(large.value)) == [
        Final("c", MAX_PIECES, None, "reply_too_large")
    ]
    assert status(asked, "working", "more") == []
    assert artifact(asked) == []
    assert status(asked, "failed") == [Final("c", MAX_PIECES)]


def test_bytes_of_artifacts_count_toward_the_cap_of_a_reply(asked: AskedAgent) -> None:
    raw = base64.b64encode(b"x" * 600_000).decode()
    artifact(asked, {"raw": raw})
    with pytest.raises(TooLarge):
        artifact(asked, {"raw": raw}, artifactId="a2")


def test_an_ending_over_the_cap_is_too_large_and_finished(asked: AskedAgent) -> None:
    with pytest.raises(TooLarge) as large:
        status(asked, "completed", "x" * (MAX_REPLY_BYTES + 1))
    failed, finished = asked.reports_of(asked.prompts.too_large(large.value))
    assert failed == Final("c", 0, None, "reply_too_large")
    assert finished == Final("c", 0)
    assert asked.prompts.is_idle(0)


def test_a_canceled_prompt_makes_the_socket_idle_and_its_end_is_still_taken(asked: AskedAgent) -> None:
    assert not asked.prompts.cancel("other")
    assert asked.prompts.cancel("c")
    assert asked.prompts.is_idle(0)
    asked.prompts.forget_old(99 + LATE_REPLY_S)
    assert said(asked, "reply_chunk", chatId="c", text="late") == [PostedChunk("c", 0, "late")]
    assert status(asked, "failed", "stopped") == [Final("c", 1, "stopped", "agent_failed")]
    assert not asked.prompts.cancel("c")


def test_the_transcript_keeps_no_bytes_of_files() -> None:
    saying = frames.read_reply_frame(
        event("task_artifact", chatId="c", artifactId="a", parts=[{"raw": "YWI=", "filename": "f"}, {"text": "t"}])
    )
    assert isinstance(saying, TaskArtifact)
    kept = kept_of(saying)
    assert kept == '{"chatId":"c","artifactId":"a","parts":[{"raw":"","filename":"f"},{"text":"t"}]}'


def test_register_takes_features_it_does_not_know(subtests: pytest.Subtests) -> None:
    frame = frames.decode('{"type":"register","features":["cancel","telepathy"]}')
    assert isinstance(frame, frames.Register)
    assert frame.features == ["cancel", "telepathy"]
    for bad in ('"cancel"', "[7]", "[null]", "{}"):
        with subtests.test(register=bad), pytest.raises(BadChannelFrame):
            frames.decode(f'{{"type":"register","features":{bad}}}')


def test_an_old_agent_gets_the_prompt_it_always_got() -> None:
    assert frames.encode(frames.Prompt("c", "t", "alice")) == (
        b'{"type":"prompt","chatId":"c","text":"t","askerUser":"alice"}'
    )
    prompt = frames.Prompt("c", "t", "alice", task_id="T", context_id="C", parts=[Part(data=1)], traceparent="00-")
    assert frames.encode(prompt) == (
        b'{"type":"prompt","chatId":"c","text":"t","askerUser":"alice",'
        b'"taskId":"T","contextId":"C","parts":[{"data":1}],"traceparent":"00-"}'
    )
