"""The reply side of a socket, without a socket."""

import json
from collections.abc import Coroutine, Sequence
from itertools import combinations
from typing import Any

import pytest

from agents.core.post import Final, PostedChunk, PostedPrompt, ReplyMessage
from agents.links.channel import frames
from agents.links.channel.frames import BadChannelFrame, ChatEvent
from agents.links.channel.payloads import read_plain_reply
from agents.links.channel.prompts import LATE_REPLY_S, MAX_CHUNK_BYTES, Prompts, TooLarge
from agents.models.choices import TurnFailure
from agents.transcript.pieces import MAX_PIECES, MAX_REPLY_BYTES


def event(kind: str, **payload: object) -> ChatEvent:
    frame = frames.decode(json.dumps({"type": "chat_event", "eventType": kind, "payload": payload, "ts": "now"}))
    assert isinstance(frame, ChatEvent)
    return frame


def prompt(chat_id: str, *, asker: int = 7, wait_s: float = 60.0, **more: Any) -> PostedPrompt:
    fields: dict[str, Any] = {"connection_id": 1, "home": "home", "asker": "", "text": ""} | more
    return PostedPrompt(chat_id=chat_id, wait_s=wait_s, asker_id=asker, **fields)


class AskedAgent:
    """The prompts of an agent, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 0.0
        self._reported: list[ReplyMessage] = []
        self.prompts = Prompts(self._report, lambda: self.now)

    async def _report(self, home: str, messages: Sequence[ReplyMessage]) -> None:
        assert home == "home"
        self._reported.extend(messages)

    def reports_of(self, step: Coroutine[Any, Any, object]) -> list[ReplyMessage]:
        """The messages that a step reports; none of them waits for anything."""
        self._reported = []
        with pytest.raises(StopIteration):
            step.send(None)
        return self._reported


def hear(asked: AskedAgent, frame: ChatEvent) -> list[ReplyMessage]:
    saying = frames.read_reply_frame(frame)
    return [] if saying is None else asked.reports_of(asked.prompts.take_reply(saying))


def said(asked: AskedAgent, kind: str, **payload: object) -> list[ReplyMessage]:
    return hear(asked, event(kind, **payload))


def waiting() -> AskedAgent:
    """A socket that owes the reply of one chat."""
    asked = AskedAgent()
    asked.prompts.begin(prompt("c", wait_s=100))
    return asked


@pytest.fixture
def asked() -> AskedAgent:
    return waiting()


def test_a_reply_may_hold_a_whole_program() -> None:
    program = '{"' + "[{(" * 20_000
    text = json.dumps({"type": "chat_event", "eventType": "reply", "payload": {"chatId": "c", "text": program}})
    assert isinstance(frames.decode(text), ChatEvent)


def test_a_reply_ends_its_chat(asked: AskedAgent) -> None:
    assert said(asked, "reply", chatId="c", text="so") == [Final("c", 0, "so")]
    assert asked.prompts.is_idle(0)


def test_chunks_are_numbered_and_the_end_counts_them(asked: AskedAgent) -> None:
    assert said(asked, "reply_chunk", chatId="c", text="a", done=False) == [PostedChunk("c", 0, "a")]
    assert said(asked, "reply_chunk", chatId="c", text="b", done=True) == [
        PostedChunk("c", 1, "b"),
        Final("c", 2),
    ]


def test_a_last_chunk_may_be_empty(asked: AskedAgent) -> None:
    assert said(asked, "reply_chunk", chatId="c", text="", done=True) == [Final("c", 0)]


@pytest.mark.parametrize("kind", ["reply", "reply_chunk"])
def test_a_foreign_chat_id_and_a_reply_after_the_end_are_refused(asked: AskedAgent, kind: str) -> None:
    with pytest.raises(BadChannelFrame, match="unknown_chat"):
        said(asked, kind, chatId="other", text="x")
    said(asked, "reply", chatId="c", text="so")
    with pytest.raises(BadChannelFrame, match="unknown_chat"):
        said(asked, kind, chatId="c", text="x")


def test_a_lost_socket_fails_what_it_owes_once(asked: AskedAgent) -> None:
    assert asked.reports_of(asked.prompts.lost()) == [Final("c", 0, None, "channel_lost")]
    assert asked.reports_of(asked.prompts.lost()) == []


def test_a_socket_that_leaves_fails_what_it_owes_with_its_reason(asked: AskedAgent) -> None:
    assert asked.reports_of(asked.prompts.lost(TurnFailure.HALTED)) == [Final("c", 0, None, "halted_meanwhile")]


def test_a_chunk_over_the_cap_fails_the_reply_and_its_end_comes_late(asked: AskedAgent) -> None:
    said(asked, "reply_chunk", chatId="c", text="x" * MAX_CHUNK_BYTES)
    with pytest.raises(TooLarge) as large:
        said(asked, "reply_chunk", chatId="c", text="ä" * (MAX_CHUNK_BYTES // 2 + 1))
    assert asked.reports_of(asked.prompts.too_large(large.value)) == [Final("c", 1, None, "reply_too_large")]
    assert said(asked, "reply_chunk", chatId="c", text="more") == []
    assert said(asked, "reply_chunk", chatId="c", text="", done=True) == [Final("c", 1)]
    with pytest.raises(BadChannelFrame, match="unknown_chat"):
        said(asked, "reply_chunk", chatId="c", text="again")


def test_a_whole_reply_over_the_cap_fails_and_is_finished(asked: AskedAgent) -> None:
    with pytest.raises(TooLarge) as large:
        said(asked, "reply", chatId="c", text="x" * (MAX_REPLY_BYTES + 1))
    failed, finished = asked.reports_of(asked.prompts.too_large(large.value))
    assert failed == Final("c", 0, None, "reply_too_large")
    assert finished == Final("c", 0)
    assert asked.prompts.is_idle(0)
    assert said(waiting(), "reply", chatId="c", text="x" * MAX_REPLY_BYTES)


def test_a_reply_holds_so_many_bytes_and_chunks_and_no_more(asked: AskedAgent) -> None:
    asked.prompts.begin(prompt("many"))
    for _ in range(MAX_PIECES):
        said(asked, "reply_chunk", chatId="many", text="x")
    with pytest.raises(TooLarge):
        said(asked, "reply_chunk", chatId="many", text="x")
    for _ in range(MAX_REPLY_BYTES // MAX_CHUNK_BYTES):
        said(asked, "reply_chunk", chatId="c", text="x" * MAX_CHUNK_BYTES)
    with pytest.raises(TooLarge):
        said(asked, "reply_chunk", chatId="c", text="x")


def test_a_prompt_no_caller_waits_for_makes_the_socket_idle_but_is_still_taken_late(
    asked: AskedAgent,
) -> None:
    assert not asked.prompts.is_idle(99)
    assert asked.prompts.is_idle(101)
    asked.prompts.forget_old(99 + LATE_REPLY_S)
    assert said(asked, "reply_chunk", chatId="c", text="late") == [PostedChunk("c", 0, "late")]
    asked.prompts.forget_old(101 + LATE_REPLY_S)
    with pytest.raises(BadChannelFrame):
        said(asked, "reply", chatId="c", text="too late")


def test_events_that_are_no_reply_say_nothing(asked: AskedAgent) -> None:
    assert said(asked, "prompt", text="typed by hand") == []


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
        '{"type": 5}',
        '{"type": "pong"',
        '{"type": "chat_event"}',
        '{"type": "register", "pid": "x"}',
        '{"type": "pong", "ts": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"type": "pong", "ts": ' + "9" * 5000 + "}",
        '{"type": "tail_event", "eventType": "x", "payload": ' + '{"a":' * 20000 + "1" + "}" * 20000 + "}",
    ]:
        with subtests.test(text=text):
            with pytest.raises(BadChannelFrame) as refused:
                frames.decode(text)
            assert refused.value.error.code in ("bad_frame", "unknown_type")


def test_a_reply_of_the_wrong_shape_is_refused_and_the_chat_stays_open(subtests: pytest.Subtests) -> None:
    for payload in ["7", "{}", '{"chatId":"c"}', '{"chatId":7,"text":"x"}', '{"chatId":"","text":"x"}']:
        with subtests.test(payload=payload):
            asked = waiting()
            frame = frames.decode(f'{{"type":"chat_event","eventType":"reply","payload":{payload},"ts":"now"}}')
            assert isinstance(frame, ChatEvent)
            with pytest.raises(BadChannelFrame):
                hear(asked, frame)
            assert said(asked, "reply", chatId="c", text="so")


def test_a_reply_is_read_in_one_step_only_if_it_is_read_the_same_by_all_steps(subtests: pytest.Subtests) -> None:
    member = ['"text":"a"', '"text":"b:c"', '"chatId":"c"', '"chatId":"\u00fc"', '"direct":true', '"done":false']
    odd = [
        '"text":7',
        '"chatId":""',
        '"direct":1',
        '"x":[]',
        '"x":{"y":":"}',
        r'"te\u0078t":"b"',
        r'"text":"\u003a"',
    ]
    usage = [
        '"usage":null',
        '"usage":{"inputTokens":1}',
        '"usage":{"inputTokens":1,"inputTokens":2}',
        '"usage":{}',
    ]
    usage += ['"usage":{"costUsd":1e999}', '"usage":{"costUsd":0.5}', '"usage":{"x":1}', '"usage":[]']
    plain = 0
    payloads = [",".join(some) for count in (2, 3, 4) for some in combinations([*member, *odd, *usage], count)]
    for kind in ("reply", "reply_chunk"):
        for payload in payloads:
            text = f'{{"type":"chat_event","eventType":"{kind}","payload":{{{payload}}},"ts":"12:00"}}'
            reply = read_plain_reply(text.encode())
            if reply is not None:
                plain += 1
                assert reply == read_slowly(text), text
    assert plain > 20
    inner = '"chatId":"c","text":"a"'
    for text in [
        f'{{"type":"chat_event","eventType":"reply","payload":{{{inner}}},"payload":{{{inner}}}}}',
        f'{{"type":"chat_event","type":"chat_event","eventType":"reply","payload":{{{inner}}}}}',
        f'{{"eventType":"reply","payload":{{{inner}}},"ts":"12:00","ts":null}}',
        f'{{"eventType":"reply","payload":{{{inner}}}}}',
        f'{{"type":"tail_event","eventType":"reply","payload":{{{inner}}}}}',
        f'{{"type":"chat_event","eventType":"reply","payload":{{{inner}}},"ts":{"[" * 70}{"]" * 70}}}',
        f'{{"type":"chat_event","eventType":"reply","payload":{{{inner}}}}} x',
        f'\ufeff{{"type":"chat_event","eventType":"reply","payload":{{{inner}}}}}',
        "[" * 100_000,
        "7",
        "",
    ]:
        with subtests.test(text=text[:100]):
            assert read_plain_reply(text.encode()) is None
    sound = f'{{"type":"chat_event","eventType":"reply","payload":{{{inner}}}}}'.encode()
    assert read_plain_reply(sound)
    for broken in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        with subtests.test(broken=broken):
            assert read_plain_reply(sound.replace(b"a", broken)) is None


def read_slowly(text: str) -> object:
    """The reply that a frame holds, or the refusal of the frame."""
    try:
        frame = frames.decode(text)
        assert isinstance(frame, ChatEvent)
        return frames.read_reply_frame(frame)
    except BadChannelFrame as bad:
        return bad
