"""The reply side of a socket, without a socket."""

import json

import pytest

from agents.core.post import ExtraPiece, Final, PostedChunk
from agents.links.channel import frames
from agents.links.channel.frames import BadChannelFrame, ChatEvent
from agents.links.channel.protocol import MAX_CHUNK_BYTES, ChannelProtocol, TooLarge
from agents.links.sockets import Report
from agents.models.choices import TurnFailure
from agents.transcript.pieces import MAX_PIECES, MAX_REPLY_BYTES


def event(kind: str, **payload: object) -> ChatEvent:
    frame = frames.decode(json.dumps({"type": "chat_event", "eventType": kind, "payload": payload, "ts": "now"}))
    assert isinstance(frame, ChatEvent)
    return frame


def hear(protocol: ChannelProtocol, frame: ChatEvent) -> list[Report]:
    saying = frames.read_reply_frame(frame)
    return [] if saying is None else protocol.take_reply(saying)


def said(protocol: ChannelProtocol, kind: str, **payload: object) -> list[PostedChunk | ExtraPiece | Final]:
    reports = hear(protocol, event(kind, **payload))
    assert all(report.home == "home" for report in reports)
    return [report.message for report in reports]


def waiting() -> ChannelProtocol:
    """A socket that owes the reply of one chat."""
    asked = ChannelProtocol()
    asked.expect("c", "home", until=100)
    return asked


@pytest.fixture
def protocol() -> ChannelProtocol:
    return waiting()


def test_a_reply_may_hold_a_whole_program() -> None:
    program = '{"' + "[{(" * 20_000
    text = json.dumps({"type": "chat_event", "eventType": "reply", "payload": {"chatId": "c", "text": program}})
    assert isinstance(frames.decode(text), ChatEvent)


def test_a_reply_ends_its_chat(protocol: ChannelProtocol) -> None:
    assert said(protocol, "reply", chatId="c", text="so") == [Final("c", 0, "so")]
    assert protocol.is_idle(0)


def test_chunks_are_numbered_and_the_end_counts_them(protocol: ChannelProtocol) -> None:
    assert said(protocol, "reply_chunk", chatId="c", text="a", done=False) == [PostedChunk("c", 0, "a")]
    assert said(protocol, "reply_chunk", chatId="c", text="b", done=True) == [
        PostedChunk("c", 1, "b"),
        Final("c", 2),
    ]


def test_a_last_chunk_may_be_empty(protocol: ChannelProtocol) -> None:
    assert said(protocol, "reply_chunk", chatId="c", text="", done=True) == [Final("c", 0)]


@pytest.mark.parametrize("kind", ["reply", "reply_chunk"])
def test_a_foreign_chat_id_and_a_reply_after_the_end_are_refused(protocol: ChannelProtocol, kind: str) -> None:
    with pytest.raises(BadChannelFrame, match="unknown_chat"):
        said(protocol, kind, chatId="other", text="x")
    said(protocol, "reply", chatId="c", text="so")
    with pytest.raises(BadChannelFrame, match="unknown_chat"):
        said(protocol, kind, chatId="c", text="x")


def test_a_lost_socket_fails_what_it_owes_once(protocol: ChannelProtocol) -> None:
    assert [report.message for report in protocol.lost()] == [Final("c", 0, None, "channel_lost")]
    assert protocol.lost() == []


def test_a_socket_that_leaves_fails_what_it_owes_with_its_reason(protocol: ChannelProtocol) -> None:
    assert [one.message for one in protocol.lost(TurnFailure.HALTED)] == [Final("c", 0, None, "halted_meanwhile")]


def test_a_chunk_over_the_cap_fails_the_reply_and_its_end_comes_late(protocol: ChannelProtocol) -> None:
    said(protocol, "reply_chunk", chatId="c", text="x" * MAX_CHUNK_BYTES)
    with pytest.raises(TooLarge) as large:
        said(protocol, "reply_chunk", chatId="c", text="ä" * (MAX_CHUNK_BYTES // 2 + 1))
    assert [one.message for one in protocol.too_large(large.value)] == [Final("c", 1, None, "reply_too_large")]
    assert said(protocol, "reply_chunk", chatId="c", text="more") == []
    assert said(protocol, "reply_chunk", chatId="c", text="", done=True) == [Final("c", 1)]
    with pytest.raises(BadChannelFrame, match="unknown_chat"):
        said(protocol, "reply_chunk", chatId="c", text="again")


def test_a_whole_reply_over_the_cap_fails_and_is_finished(protocol: ChannelProtocol) -> None:
    with pytest.raises(TooLarge) as large:
        said(protocol, "reply", chatId="c", text="x" * (MAX_REPLY_BYTES + 1))
    failed, finished = (one.message for one in protocol.too_large(large.value))
    assert failed == Final("c", 0, None, "reply_too_large")
    assert finished == Final("c", 0)
    assert protocol.is_idle(0)
    assert said(waiting(), "reply", chatId="c", text="x" * MAX_REPLY_BYTES)


def test_a_reply_holds_so_many_bytes_and_chunks_and_no_more(protocol: ChannelProtocol) -> None:
    protocol.expect("many", "home", until=100)
    for _ in range(MAX_PIECES):
        said(protocol, "reply_chunk", chatId="many", text="x")
    with pytest.raises(TooLarge):
        said(protocol, "reply_chunk", chatId="many", text="x")
    for _ in range(MAX_REPLY_BYTES // MAX_CHUNK_BYTES):
        said(protocol, "reply_chunk", chatId="c", text="x" * MAX_CHUNK_BYTES)
    with pytest.raises(TooLarge):
        said(protocol, "reply_chunk", chatId="c", text="x")


def test_a_prompt_no_caller_waits_for_makes_the_socket_idle_but_is_still_taken_late(
    protocol: ChannelProtocol,
) -> None:
    assert not protocol.is_idle(99)
    assert protocol.is_idle(101)
    protocol.forget_before(99)
    assert said(protocol, "reply_chunk", chatId="c", text="late") == [PostedChunk("c", 0, "late")]
    protocol.forget_before(101)
    with pytest.raises(BadChannelFrame):
        said(protocol, "reply", chatId="c", text="too late")


def test_events_that_are_no_reply_say_nothing(protocol: ChannelProtocol) -> None:
    assert said(protocol, "prompt", text="typed by hand") == []


def test_what_is_no_frame_is_refused_by_name(subtests: pytest.Subtests) -> None:
    for text in [
        "",
        "null",
        "[]",
        "7",
        '"x"',
        "{",
        '{"type":7}',
        '{"type":"reply"}',
        "[" * 100_000,
        '{"type":"pong","ts":"\\ud800"}',
        '{"type":"register","host":"a","host":"b"}',
        '{"type": "register", "type": "pong"}',
        '{"type": "chat_event", "eventType": "reply", "payload": {"chatId": "c", "text": "a", "text": "b"}}',
        '{"type": "tail_event", "eventType": "x", "payload": {"n": 1e999}}',
        '{"type": "pong", "ts": NaN}',
    ]:
        with subtests.test(text=text):
            with pytest.raises(BadChannelFrame) as refused:
                frames.decode(text)
            assert refused.value.error.code in ("bad_frame", "unknown_type")


def test_a_reply_of_the_wrong_shape_is_refused_and_the_chat_stays_open(subtests: pytest.Subtests) -> None:
    for payload in ["7", "{}", '{"chatId":"c"}', '{"chatId":7,"text":"x"}', '{"chatId":"","text":"x"}']:
        with subtests.test(payload=payload):
            protocol = waiting()
            frame = frames.decode(f'{{"type":"chat_event","eventType":"reply","payload":{payload},"ts":"now"}}')
            assert isinstance(frame, ChatEvent)
            with pytest.raises(BadChannelFrame):
                hear(protocol, frame)
            assert said(protocol, "reply", chatId="c", text="so")
