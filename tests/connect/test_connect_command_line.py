"""`python -m clawbridge.connect` as its owner and its hub see it."""

import asyncio
import getpass
import json
import os
import re
import signal
import socket
import time

import pytest

from clawbridge.connect import Agent, Ending, echo
from clawbridge.connect.__main__ import EXIT_CODES
from tests.connect.command_lines import refused

SESSION = "5a0c4b6e-7b4e-4a43-9a0f-3f6f8f1f0001"
TS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_it_registers_first_with_its_token_in_the_header(hub, start):
    program = await start("--name", "my-bot", "--echo")
    visit = await hub.next_visit()
    register = await visit.receive()
    assert visit.path == "/channel"
    assert visit.headers["Authorization"] == "Bearer ck_live_test"
    assert TS.fullmatch(register.pop("ts"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", register.pop("channelVersion"))
    assert register == {
        "type": "register",
        "host": socket.gethostname(),
        "cwd": os.getcwd(),
        "osUser": getpass.getuser(),
        "pid": program.process.pid,
        "sessionId": None,
        "features": ["cancel"],
        "routingName": "my-bot",
    }
    await visit.send(type="welcome", sessionId=SESSION, routingName="@my-bot", channelTokenName="t")
    await visit.ask("héllo\n \U0001f980", "chat-7")
    event = await visit.receive()
    assert TS.fullmatch(event.pop("ts"))
    reply = {"chatId": "chat-7", "text": "héllo\n \U0001f980"}
    assert event == {"type": "chat_event", "eventType": "reply", "payload": reply}


async def test_hub_and_token_come_from_the_environment_too(hub, start):
    origin = hub.url.replace("http", "ws")
    program = await start("--echo", where=(), CLAWBRIDGE_HUB=origin, CLAWBRIDGE_TOKEN="ck_live_env")
    visit = await hub.next_visit()
    register = await visit.welcome(SESSION, "tester")
    assert visit.headers["Authorization"] == "Bearer ck_live_env"
    assert "routingName" not in register
    assert await program.line() == f"connected as @tester (session {SESSION})\n"


async def test_json_makes_a_line_of_json_of_each_log_line(hub, start):
    program = await start("--json", "--echo")
    await hub.welcome(SESSION, "tester")
    line = json.loads(await program.line())
    assert (line["level"], line["message"]) == ("info", f"connected as @tester (session {SESSION})")
    assert abs(line["at"] - time.time()) < 60


async def test_a_ping_comes_back_as_a_pong_and_oddities_are_ignored(online):
    visit = await online("--echo")
    await visit.socket.send("{")
    await visit.socket.send('"text"')
    await visit.send(type="prompt", chatId=7)
    await visit.send(type="peers_update", peers=[])
    await visit.send(type="error", code="bad_frame", message="tut")
    await visit.send(type="ping", ts="2026-01-01T00:00:00Z")
    assert await visit.receive() == {"type": "pong", "ts": "2026-01-01T00:00:00Z"}


async def test_a_refused_token_ends_it_with_exit_code_2(hub, start):
    program = await start("--echo")
    visit = await hub.next_visit()
    await visit.receive()
    await visit.send(type="error", code="auth_failed", message="no \x1b[31mway")
    await visit.socket.close(1008)
    status, errors = await program.ended()
    assert (status, "auth_failed" in errors, "no  [31mway" in errors) == (2, True, True)
    assert hub.visits.empty()


@pytest.mark.parametrize(
    ("frame", "ending"),
    [
        ({"type": "bye", "reason": "superseded", "retry": False}, Ending.SUPERSEDED),
        ({"type": "bye", "reason": "archived", "retry": False}, Ending.DISMISSED),
        ({"type": "error", "code": "token_revoked", "message": "no"}, Ending.REFUSED),
    ],
)
async def test_a_final_frame_ends_it(hub, frame, ending, caplog):
    run = asyncio.create_task(Agent(hub=hub.url, token="ck_live_test", answer=echo).run())
    visit = await hub.welcome()
    await visit.send(**frame)
    await visit.socket.close(1008)
    assert await run is ending
    assert (frame.get("reason") or frame["code"]) in caplog.text
    assert EXIT_CODES[ending] == {"superseded": 3, "archived": 0}.get(frame.get("reason"), 2)


async def test_a_bye_counts_although_the_pong_before_it_cannot_be_sent(hub, start):
    program = await start("--echo")
    visit = await hub.welcome()
    await program.line()
    program.signal(signal.SIGSTOP)  # so that it reads all that follows at once
    await visit.send(type="ping", ts="2026-01-01T00:00:00Z")
    await visit.send(type="bye", reason="superseded", retry=False)
    closing = asyncio.create_task(visit.socket.close(1000))
    await asyncio.sleep(0)
    program.signal(signal.SIGCONT)
    status, errors = await program.ended()
    await closing
    assert (status, "superseded" in errors) == (3, True)


async def test_it_comes_back_after_a_second_with_its_session(hub, start, tmp_path):
    file = tmp_path / "session"
    file.write_text(SESSION)
    await start("--session-file", str(file), "--echo")
    visit = await hub.next_visit()
    granted = SESSION.replace("0001", "0002")
    assert (await visit.welcome(granted))["sessionId"] == SESSION
    await visit.send(type="bye", reason="restart", retry=True)
    left_at = time.monotonic()
    again = await hub.next_visit()
    assert time.monotonic() - left_at > 0.9
    assert (await again.receive())["sessionId"] == granted
    assert file.read_text() == f"{granted}\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_a_clean_close(hub, start, closed, number):
    program = await start("--echo")
    visit = await hub.welcome()
    await program.line()
    program.signal(number)
    with pytest.raises(closed):
        await visit.receive()
    assert (visit.socket.close_code, visit.socket.close_reason) == (1000, "stop")
    status, errors = await program.ended()
    assert status == 0
    assert "socket closed" not in errors


async def test_a_signal_lets_a_running_question_finish(hub, start):
    program = await start("--exec", "sh", "-c", "echo begun; sleep 0.5; echo ended")
    visit = await hub.welcome()
    await visit.ask("go")
    assert (await visit.receive())["payload"]["text"] == "begun\n"
    program.signal(signal.SIGTERM)
    assert await visit.chunks() == ["ended\n"]
    assert (await program.ended())[0] == 0


async def test_a_second_signal_ends_it_and_its_commands_at_once(hub, start, lifeline, tmp_path):
    """The running commands are killed: none is asked to end, and given time."""
    asked = tmp_path / "asked"
    script = f"exec 9> {lifeline.path}; trap 'touch {asked}' TERM; echo on; sleep 60 & sleep 60; wait"
    program = await start("--exec", "sh", "-c", script)
    visit = await hub.welcome()
    await visit.ask("go")
    await visit.receive()
    program.signal(signal.SIGINT)
    program.signal(signal.SIGTERM)  # the same again might come as one
    assert (await program.ended())[0] == 0
    await lifeline.all_gone()
    assert not asked.exists()


PLACE = ("--hub", "http://h", "--token", "ck_live_x")
REFUSED = [
    (("--echo",), "--hub is missing (or set CLAWBRIDGE_HUB)"),
    (("--hub", "http://h", "--echo"), "--token is missing (or set CLAWBRIDGE_TOKEN)"),
    (("--hub", "ftp://h", "--token", "ck_live_x", "--echo"), "want an address"),
    (("--hub", "https://h/path?q", "--token", "ck_live_x", "--echo"), "want an address"),
    (("--hub", "http://h", "--token", "cw_sess_x", "--echo"), "begins with ck_live_"),
    ((*PLACE, "--name", "Bad_Name", "--echo"), "want only a-z"),
    (PLACE, "want one of --echo, --exec CMD, --preset NAME and --mcp"),
    ((*PLACE, "--echo", "--exec", "cat"), "want one of"),
    ((*PLACE, "--exec", "--"), "want a command"),
    ((*PLACE, "--echo", "cat"), "'cat' is in the way of --echo"),
    ((*PLACE, "--echo", "--protocol", "lines"), "--protocol lines: want --exec CMD"),
    (("--bogus",), "unrecognized arguments"),
    ((*PLACE, "--echo", "--token-file", "/nowhere/token"), "not both"),
    ((*PLACE[:2], "--echo", "--token-file", "/nowhere/token"), "--token-file /nowhere/token"),
    ((*PLACE, "--echo", "--session-file", "x", "--new-session"), "not both"),
    ((*PLACE, "--preset", "claude"), "--preset: want --directory PATH"),
    ((*PLACE, "--preset", "claude", "--directory", "/no/such"), "--directory /no/such: no such directory"),
    ((*PLACE, "--preset", "claude", "--directory", "."), "claude is not installed (npm install -g @anthropic-ai/"),
    ((*PLACE, "--preset", "openclaw", "--directory", "."), "openclaw has no read-only mode"),
    ((*PLACE, "--preset", "gemini", "--directory", ".", "--access", "ask"), "gemini asks no permission"),
    ((*PLACE, "--gateway", "--name", "a", "--preset", "claude", "--access", "ask"), "--access ask: not with"),
    ((*PLACE, "--preset", "claude", "--echo"), "want one of --echo, --exec CMD, --preset NAME and --mcp"),
    ((*PLACE, "--echo", "--access", "write"), "--directory and --access: want --preset NAME"),
    ((*PLACE, "--preset", "claude", "--protocol", "lines"), "--protocol lines: want --exec CMD"),
    ((*PLACE, "--agnt", "--echo"), "--agnt: want --exec CMD"),
    ((*PLACE, "--agnt"), "want one of --echo"),
    ((*PLACE, "--agnt", "--protocol", "lines", "--exec", "cat"), "--agnt: want --exec CMD"),
    ((*PLACE, "--agnt", "--gateway", "--name", "a", "--exec", "cat"), "--agnt: want --exec CMD"),
    ((*PLACE, "--agnt-secret-file", "x", "--exec", "cat"), "--agnt-secret-file: want --agnt"),
    ((*PLACE, "--agnt", "--agnt-secret-file", "/absent/file", "--exec", "cat"), "No such file"),
    ((*PLACE, "--agnt", "--agnt-secret-file", os.devnull, "--exec", "cat"), "it is empty"),
    ((*PLACE, "--gateway", "--echo"), "--gateway: want --name"),
    ((*PLACE, "--gateway", "--name", "1", "--echo"), "--gateway: want --name"),
    ((*PLACE, "--name", "a", "--votes", "--echo"), "--votes: want --gateway"),
    ((*PLACE, "--gateway", "--name", "a", "--new-session", "--echo"), "--gateway: a seat goes by its --name"),
]


def test_arguments_that_cannot_be_right_are_one_clear_line_and_exit_code_2(
    capsys, monkeypatch, tmp_path, subtests
):
    monkeypatch.setenv("PATH", "/nowhere")
    for number, (arguments, complaint) in enumerate(REFUSED):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / str(number)))  # each holds a file of its session
        with subtests.test(arguments=arguments):
            assert complaint in refused(capsys, *arguments)
    monkeypatch.setenv("PATH", os.defpath)
    for secret in ("hex:xx", "one two three"):
        monkeypatch.setenv("CLAWBRIDGE_AGNT_SECRET", secret)
        errors = refused(capsys, *PLACE, "--new-session", "--agnt", "--exec", "cat")
        assert ("CLAWBRIDGE_AGNT_SECRET: want" in errors, secret in errors) == (True, False), errors
