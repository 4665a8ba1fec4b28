"""`connect --agnt`: a program that answers the envelopes of a network as a venue."""

import asyncio
import json
import os
import shutil
import sys
import time
from dataclasses import replace

import pytest

from agnt.client import Ask, describe_ask, read_response
from agnt.client.asks import CallFailed
from agnt.wire.errors import ErrorCode
from connect import packing
from lab import ROOT

FEATURES = ["cancel", "task_artifact", "task_status"]
SECRET = "s3cret of la-brisa".replace(" ", "-")
BARE = (sys.executable, "-I", "-S")  # Python alone: no site-packages, nothing of this folder
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
async def venue(hub, start, book):
    async def venue(secret=SECRET, command=(sys.executable, "-m", "connect"), **environ):
        environ = {"CLAWBRIDGE_AGNT_SECRET": secret, **environ} if secret else environ
        program = (sys.executable, str(book))
        process = await start("--name", "la-brisa", "--agnt", "--exec", "--", *program, command=command, **environ)
        visit = await hub.next_visit()
        await visit.welcome(features=FEATURES)
        venue = Venue(visit)
        venue.process = process
        return venue

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
    asked = confirm(user_note="café ☕")
    answer = await (await venue()).answer(asked)
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


async def test_the_program_reads_who_passed_an_envelope_on(venue):
    answer = await (await venue()).answer(replace(confirm(), origin="my_agent_001"))
    heard = answer.payload["heard"]
    assert heard["agent_context"] == {"locale": "en", "origin": "my_agent_001"}
    assert [hop["agent"] for hop in heard["via"]] == ["agnt_consumer_42"]


async def test_an_envelope_may_come_as_text(venue):
    connected, ask = await venue(), confirm()
    text = json.dumps(describe_ask(ask, secret=SECRET.encode(), at_s=int(time.time())))
    assert read_response(await connected.data(text=text), ask).payload["heard"]["from"] == "agnt_consumer_42"


async def test_a_ping_is_answered_without_the_program(venue):
    ask = Ask(sender="agnt_consumer_42", to="la-brisa", intent="network.ping", payload={"do": "fail"})
    assert (await (await venue()).answer(ask)).payload == {"status": "ok", "agent_id": "la-brisa"}


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
    assert (await refusal(connected, ask, at_s=time.time() - 400)).code == ErrorCode.TIMESTAMP_EXPIRED
    assert (await refusal(connected, ask, at_s=time.time() + 100)).code == ErrorCode.TIMESTAMP_EXPIRED


async def test_a_copied_payload_is_refused_and_the_same_event_may_come_again(venue):
    connected, ask, at_s = await venue(), confirm(), int(time.time())
    for _ in range(2):
        assert (await connected.answer(ask, at_s=at_s)).payload["heard"]["timestamp"] == ask.timestamp
    for change in ({"intent": "booking.search"}, {"timestamp": "2026-04-12T10:02:04Z"}):
        assert (await refusal(connected, ask, at_s=at_s, **change)).code == ErrorCode.INVALID_SIGNATURE


async def test_without_a_secret_no_signature_is_wanted_and_the_program_never_gets_the_secret(venue):
    assert (await (await venue(secret="")).answer(confirm(), secret="")).payload["heard"]
    assert (await (await venue()).answer(confirm(do="secret"))).payload == {"secret": "none"}


async def test_the_secret_before_is_taken_too(venue, hub, start, book, tmp_path):
    file = tmp_path / "secrets"
    file.write_text(f"new-secret\n{SECRET}\n")
    await start("--agnt", "--agnt-secret-file", str(file), "--exec", "--", sys.executable, str(book))
    visit = await hub.next_visit()
    await visit.welcome(features=FEATURES)
    for secret in ("new-secret", SECRET):
        assert (await Venue(visit).answer(confirm(), secret=secret)).payload["heard"]


FAILING = [
    ({"do": "fail"}, "internal_error"),
    ({"do": "flood"}, "internal_error"),
    ({"do": "deep"}, "internal_error"),
    ({"do": "print", "text": ""}, "internal_error"),
    ({"do": "print", "text": "Table for four!"}, "internal_error"),
    ({"do": "print", "text": '{"a":1}\n{"a":2}'}, "internal_error"),
    ({"do": "print", "text": "[1]"}, "internal_error"),
    ({"do": "print", "text": "{}"}, "internal_error"),
    ({"do": "print", "text": '{"a":NaN}'}, "internal_error"),
    ({"do": "print", "text": '{"a":1e999}'}, "internal_error"),
    ({"do": "print", "text": '{"status":"error"}'}, "internal_error"),
    ({"do": "print", "text": '{"status":"error","error":{"code":"full"}}'}, "internal_error"),
    ({"do": "print", "text": '{"status":"error","error":{"code":"slot_unavailable"}}'}, "slot_unavailable"),
]


async def test_a_program_that_fails_is_a_typed_error(venue):
    connected = await venue()
    for order, code in FAILING:
        failed = await refusal(connected, confirm(**order))
        assert (failed.code, failed.retryable) == (code, code == "internal_error"), order
        assert "paper" not in str(failed)  # why is for the owner
    assert (await connected.answer(confirm())).payload["heard"]  # and the next one is answered


async def test_the_owner_reads_why_a_program_failed(venue):
    connected = await venue()
    await refusal(connected, confirm(do="fail"))
    line = "begun"
    while line and "out of paper" not in line:
        line = await connected.process.line()
    assert line


async def test_an_error_of_the_program_says_more(venue):
    error = {"code": "rate_limited", "message": "closed until noon", "retry_after_s": 30, "retryable": False}
    text = json.dumps({"status": "error", "error": error})
    failed = await refusal(await venue(), confirm(do="print", text=text))
    assert (str(failed), failed.retryable, failed.retry_after_s) == ("closed until noon", True, 30)


async def test_a_program_gets_the_time_of_the_envelope(venue):
    ask = confirm(do="sleep")
    began_at = time.monotonic()
    failed = await refusal(await venue(), ask, ttl_ms=300)
    assert (failed.code, failed.retryable) == (ErrorCode.TTL_EXCEEDED, True)
    assert time.monotonic() - began_at < 20


NO_ENVELOPES = [
    {"text": "a table for four, please"},
    {"text": '["intent"]'},
    {"text": "[" * 100_000},
    {"parts": [{"data": ["intent"]}]},
    {"parts": [{"data": {"query": "dinner"}}]},
    {"parts": [{"data": {"intent": "network.ping"}}, {"data": {"intent": "network.ping"}}]},
    {"parts": [{"url": "https://example.com/menu.pdf"}]},
]


async def test_what_is_no_envelope_is_rejected(venue):
    connected = await venue()
    for asked in NO_ENVELOPES:
        end, artifacts = await connected.reply(**asked)
        assert (end["payload"]["state"], artifacts) == ("rejected", []), asked
        assert "AGNT envelopes" in end["payload"]["text"]


async def test_an_envelope_that_is_wrong_is_answered_with_what_is(venue):
    connected, ask = await venue(), confirm()
    envelope = describe_ask(ask, secret=SECRET.encode(), at_s=int(time.time()))
    for change, code, field in (
        ({"from": 7}, "invalid_envelope", ["from"]),
        ({"payload": "x"}, "invalid_envelope", ["payload"]),
        ({"ttl_ms": 0}, "invalid_envelope", ["ttl_ms"]),
        ({"protocol": "agp/1"}, "unsupported_protocol", None),
    ):
        response = await connected.data(parts=[{"data": envelope | change}])
        error = response["payload"]["error"]
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


async def test_python_alone_is_a_venue_with_connect_pyz(venue, tmp_path):
    file = tmp_path / packing.NAME
    file.write_bytes(packing.archive())
    connected = await venue(command=(*BARE, str(file)))
    assert (await connected.answer(confirm())).payload["heard"]["to"] == "la-brisa"
    assert (await refusal(connected, confirm(), secret="another")).code == ErrorCode.INVALID_SIGNATURE


async def test_the_folder_alone_says_what_it_lacks(start, tmp_path):
    shutil.copytree(ROOT / "connect", tmp_path / "connect")
    where = ("--hub", "http://h", "--token", "ck_live_x")
    program = await start("--agnt", "--exec", "cat", where=where, cwd=tmp_path)
    status, errors = await program.ended()
    assert (status, "the folder agnt is not beside connect" in errors) == (2, True), errors


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--agnt", "--echo"], "--agnt: want --exec CMD"),
        (["--agnt"], "want one of --echo"),
        (["--agnt", "--protocol", "lines", "--exec", "cat"], "--agnt: want --exec CMD"),
        (["--agnt", "--gateway", "--name", "a", "--exec", "cat"], "--agnt: want --exec CMD"),
        (["--agnt-secret-file", "x", "--exec", "cat"], "--agnt-secret-file: want --agnt"),
        (["--agnt", "--agnt-secret-file", "/absent/file", "--exec", "cat"], "No such file"),
        (["--agnt", "--agnt-secret-file", os.devnull, "--exec", "cat"], "it is empty"),
    ],
)
async def test_bad_options_are_one_clear_line(start, arguments, complaint):
    where = ("--hub", "http://h", "--token", "ck_live_x")
    status, errors = await (await start(*arguments, where=where)).ended()
    assert (status, complaint in errors, errors.count("\n")) == (2, True, 1), errors


@pytest.mark.parametrize("secret", ["hex:xx", "one two three"])
async def test_a_secret_that_is_none_is_not_shown(start, secret):
    where = ("--hub", "http://h", "--token", "ck_live_x")
    program = await start("--agnt", "--exec", "cat", where=where, CLAWBRIDGE_AGNT_SECRET=secret)
    status, errors = await program.ended()
    assert (status, "CLAWBRIDGE_AGNT_SECRET: want" in errors, secret in errors) == (2, True, False), errors
