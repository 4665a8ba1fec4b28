"""`connect --agnt`: a program that answers the envelopes of a network as a venue."""

import asyncio
import json
import sys
import time
from dataclasses import replace

import pytest

from clawbridge.agnt import Ask, describe_ask, read_response
from clawbridge.agnt.asks import CallFailed
from clawbridge.agnt.fields import ErrorCode
from tests.connect.command_lines import FEATURES

SECRET = "s3cret of la-brisa".replace(" ", "-")
PROGRAM = """\
import json, os, sys, time
envelope = json.loads(sys.stdin.readline())
order = envelope["payload"]
do = order.get("do")
if do == "sleep":
    time.sleep(60)
if do == "fail":
    sys.exit("out of paper")
if do == "print":
    print(order["text"])
elif do == "flood":
    print('{"a":"' + "x" * 300_000 + '"}')
elif do == "deep":
    print('{"a":' + "[" * 40 + "]" * 40 + "}")
elif do == "secret":
    print(json.dumps({"secret": os.environ.get("CLAWBRIDGE_AGNT_SECRET", "none")}))
else:
    print(json.dumps({"heard": envelope}))
"""


@pytest.fixture
def book(tmp_path):
    """The path of the venue's program."""
    path = tmp_path / "book.py"
    path.write_text(PROGRAM)
    return path


class Venue:
    """A connector that is a venue, as the hub talks to it."""

    def __init__(self, visit):
        self.visit = visit
        self._asked = 0

    async def answer(self, ask, *, secret=SECRET, at_s=None, **changes):
        """Send an ask as a data part, and read the response in the reply; raises CallFailed for an error."""
        envelope = describe_ask(ask, secret=secret.encode(), at_s=int(time.time() if at_s is None else at_s))
        return read_response(await self.data(parts=[{"data": envelope | changes}]), ask)

    async def data(self, *, text="", parts=()):
        """Ask, and give the data part of the reply."""
        end, artifacts = await self.reply(text=text, parts=parts)
        assert (end["eventType"], len(artifacts)) == ("reply_chunk", 1), end
        assert artifacts[0]["artifactId"] == "envelope"
        [part] = artifacts[0]["parts"]
        return part["data"]

    async def reply(self, *, text="", parts=()):
        """Ask, and give the last frame of the reply, and its artifacts."""
        self._asked += 1
        await self.visit.ask(text, f"c{self._asked}", parts=list(parts))
        artifacts = []
        while (frame := await self.visit.receive())["eventType"] == "task_artifact":
            artifacts.append(frame["payload"])
        return frame, artifacts


@pytest.fixture
async def venue(online, book, monkeypatch):
    async def venue(secret=SECRET, *arguments):
        monkeypatch.setenv("CLAWBRIDGE_AGNT_SECRET", secret)
        program = (sys.executable, str(book))
        return Venue(
            await online("--name", "la-brisa", "--agnt", *arguments, "--exec", "--", *program, features=FEATURES)
        )

    return venue


def confirm(**order):
    return Ask(
        sender="agnt_consumer_42",
        to="la-brisa",
        intent="booking.confirm",
        payload={"venue_id": "la-brisa", "party_size": 4, **order},
        agent_context={"locale": "en"},
    )


async def refusal(venue, ask, **options):
    with pytest.raises(CallFailed) as failed:
        await venue.answer(ask, **options)
    return failed.value


async def test_the_program_reads_the_envelope_and_prints_the_payload(venue):
    connected, asked = await venue(), confirm(user_note="café ☕")
    answer = await connected.answer(asked)
    assert answer.agent_context == {"locale": "en"}
    assert answer.payload["heard"] == {
        "protocol": "openclaw/a2a/v1",
        "from": "agnt_consumer_42",
        "to": "la-brisa",
        "intent": "booking.confirm",
        "payload": {"venue_id": "la-brisa", "party_size": 4, "user_note": "café ☕"},
        "agent_context": {"locale": "en"},
        "ttl_ms": 5000,
        "timestamp": asked.timestamp,
    }
    heard = (await connected.answer(replace(confirm(), origin="my_agent_001"))).payload["heard"]
    assert heard["agent_context"] == {"locale": "en", "origin": "my_agent_001"}
    assert [hop["agent"] for hop in heard["via"]] == ["agnt_consumer_42"]
    text = json.dumps(describe_ask(asked, secret=SECRET.encode(), at_s=int(time.time())))  # it may come as text
    assert read_response(await connected.data(text=text), asked).payload["heard"]["from"] == "agnt_consumer_42"
    ping = Ask(sender="agnt_consumer_42", to="la-brisa", intent="network.ping", payload={"do": "fail"})
    pong = {"status": "ok", "agent_id": "la-brisa"}  # without the program
    assert (await connected.answer(ping)).payload == pong


async def test_only_envelopes_with_a_right_signature_reach_the_program(venue):
    connected, ask = await venue(), confirm()
    for options in (
        {"secret": ""},
        {"secret": "another"},
        {"from": "other"},
        {"payload": {"venue_id": "la-brisa"}},
    ):
        failed = await refusal(connected, ask, **options)
        assert failed.code == ErrorCode.INVALID_SIGNATURE, options
    at_s = int(time.time())
    for other in (at_s - 400, at_s + 100):
        assert (await refusal(connected, ask, at_s=other)).code == ErrorCode.TIMESTAMP_EXPIRED
    for _ in range(2):  # the same event may come again; a copied order is refused
        assert (await connected.answer(ask, at_s=at_s)).payload["heard"]["timestamp"] == ask.timestamp
    later = {"timestamp": "2026-04-12T10:02:04Z"}
    assert (await refusal(connected, ask, at_s=at_s, **later)).code == ErrorCode.INVALID_SIGNATURE
    for search in (replace(ask, intent="booking.search"), replace(ask, intent="booking.search", **later)):
        assert (await connected.answer(search, at_s=at_s)).payload["heard"]["timestamp"] == search.timestamp


async def test_without_a_secret_no_signature_is_wanted_and_the_program_never_gets_the_secret(venue):
    assert (await (await venue(secret="")).answer(confirm(), secret="")).payload["heard"]
    assert (await (await venue()).answer(confirm(do="secret"))).payload == {"secret": "none"}


async def test_the_secret_before_is_taken_too(venue, tmp_path):
    file = tmp_path / "secrets"
    file.write_text(f"new-secret\n{SECRET}\n")
    connected = await venue("", "--agnt-secret-file", str(file))
    for secret in ("new-secret", SECRET):
        assert (await connected.answer(confirm(), secret=secret)).payload["heard"]


UNREADABLE = (
    "",
    "Table for four!",
    '{"a":1}\n{"a":2}',
    "[1]",
    "{}",
    '{"a":NaN}',
    '{"a":1e999}',
    '{"status":"error"}',
)
FAILING = [
    *(({"do": one}, "internal_error") for one in ("fail", "flood", "deep")),
    *(({"do": "print", "text": text}, "internal_error") for text in UNREADABLE),
    ({"do": "print", "text": '{"status":"error","error":{"code":"full"}}'}, "internal_error"),
    ({"do": "print", "text": '{"status":"error","error":{"code":"slot_unavailable"}}'}, "slot_unavailable"),
]


async def test_a_program_that_fails_is_a_typed_error(venue, caplog, subtests):
    connected = await venue()
    for order, code in FAILING:
        failed = await refusal(connected, confirm(**order))
        with subtests.test(order=order):
            assert (failed.code, failed.retryable) == (code, code == "internal_error")
            assert "paper" not in str(failed)
    assert "out of paper" in caplog.text  # why is for the owner
    error = {"code": "rate_limited", "message": "closed until noon", "retry_after_s": 30, "retryable": False}
    text = json.dumps({"status": "error", "error": error})
    failed = await refusal(connected, confirm(do="print", text=text))
    assert (str(failed), failed.retryable, failed.retry_after_s) == ("closed until noon", True, 30)
    began_at = time.monotonic()
    failed = await refusal(connected, confirm(do="sleep"), ttl_ms=300)  # it gets the time of the envelope
    assert (failed.code, failed.retryable) == (ErrorCode.TTL_EXCEEDED, True)
    assert time.monotonic() - began_at < 20
    assert (await connected.answer(confirm())).payload["heard"]  # and the next one is answered


async def test_the_owner_reads_which_rule_a_reply_breaks(venue, caplog):
    connected = await venue()
    text = '{"status":"booked"}'
    assert (await connected.answer(confirm(do="print", text=text))).payload == {"status": "booked"}
    assert "status: want one of pending, confirmed" in caplog.text
    caplog.clear()
    assert (await connected.answer(confirm(do="print", text='{"status":"pending","table":4}'))).payload
    assert "no reply" not in caplog.text


async def test_what_is_no_envelope_is_rejected_and_a_wrong_one_answered_with_what_is(venue, subtests):
    connected, ask = await venue(), confirm()
    for asked in (
        {"text": "a table for four, please"},
        {"text": '["intent"]'},
        {"text": "[" * 100_000},
        {"parts": [{"data": ["intent"]}]},
        {"parts": [{"data": {"query": "dinner"}}]},
        {"parts": [{"data": {"intent": "network.ping"}}] * 2},
        {"parts": [{"url": "https://example.com/menu.pdf"}]},
    ):
        end, artifacts = await connected.reply(**asked)
        with subtests.test(asked=asked):
            assert (end["payload"]["state"], artifacts) == ("rejected", [])
            assert "AGNT envelopes" in end["payload"]["text"]
    envelope = describe_ask(ask, secret=SECRET.encode(), at_s=int(time.time()))
    for change, code, field in (
        ({"from": 7}, "invalid_envelope", ["from"]),
        ({"payload": "x"}, "invalid_envelope", ["payload"]),
        ({"ttl_ms": 0}, "invalid_envelope", ["ttl_ms"]),
        ({"protocol": "agp/1"}, "unsupported_protocol", None),
    ):
        error = (await connected.data(parts=[{"data": envelope | change}]))["payload"]["error"]
        with subtests.test(change=change):
            assert (error["code"], error.get("fields")) == (code, field)


async def test_a_cancel_ends_the_program(venue, lifeline, book):
    begun = book.with_name("begun")
    begin = f"import pathlib, time; held = open({str(lifeline.path)!r}, 'w'); pathlib.Path({str(begun)!r}).touch()"
    book.write_text(f"{begin}; time.sleep(60)")
    connected = await venue()
    envelope = describe_ask(confirm(), secret=SECRET.encode(), at_s=int(time.time()))
    await connected.visit.ask("", "c1", parts=[{"data": envelope}])
    while not begun.exists():
        await asyncio.sleep(0.05)
    await connected.visit.send(type="cancel", chatId="c1")
    await lifeline.all_gone()


async def test_python_alone_is_a_venue_with_connect_pyz(hub, start, book, pyz):
    program = ("--name", "la-brisa", "--agnt", "--exec", "--", sys.executable, str(book))
    await start(*program, command=pyz, CLAWBRIDGE_AGNT_SECRET=SECRET)
    visit = await hub.welcome(features=FEATURES)
    connected = Venue(visit)
    assert (await connected.answer(confirm())).payload["heard"]["to"] == "la-brisa"
    assert (await refusal(connected, confirm(), secret="another")).code == ErrorCode.INVALID_SIGNATURE
