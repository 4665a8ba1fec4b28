"""`python -m connect` as its owner and its hub see it."""

import asyncio
import getpass
import os
import re
import signal
import socket
import time

import pytest

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


async def test_hub_and_token_come_from_the_environment_too(hub, start):
    origin = hub.url.replace("http", "ws")
    program = await start("--echo", where=(), CLAWBRIDGE_HUB=origin, CLAWBRIDGE_TOKEN="ck_live_env")
    visit = await hub.next_visit()
    register = await visit.welcome(SESSION, "tester")
    assert visit.headers["Authorization"] == "Bearer ck_live_env"
    assert "routingName" not in register
    assert await program.line() == f"connected as @tester (session {SESSION})\n"


async def test_echo_is_one_reply_with_the_questions_own_text(online):
    visit = await online("--echo")
    await visit.ask("héllo\n \U0001f980", "chat-7")
    event = await visit.receive()
    assert TS.fullmatch(event.pop("ts"))
    assert event == {
        "type": "chat_event",
        "eventType": "reply",
        "payload": {"chatId": "chat-7", "text": "héllo\n \U0001f980"},
    }


async def test_a_ping_comes_back_as_a_pong_and_oddities_are_ignored(online):
    visit = await online("--echo")
    await visit.socket.send("{")
    await visit.socket.send('"text"')
    await visit.send(type="prompt", chatId=7)
    await visit.send(type="peers_update", peers=[])
    await visit.send(type="error", code="bad_frame", message="tut")
    await visit.send(type="ping", ts="2026-01-01T00:00:00Z")
    assert await visit.receive() == {"type": "pong", "ts": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("code", ["auth_failed", "token_revoked"])
async def test_a_refused_token_ends_it_with_exit_code_2(hub, start, code):
    program = await start("--echo")
    visit = await hub.next_visit()
    await visit.receive()
    await visit.send(type="error", code=code, message="no \x1b[31mway")
    await visit.socket.close(1008)
    status, errors = await program.ended()
    assert (status, code in errors, "no  [31mway" in errors) == (2, True, True)
    assert hub.visits.empty()


@pytest.mark.parametrize(("reason", "expected"), [("superseded", 3), ("archived", 0)])
async def test_a_final_bye_ends_it(hub, start, reason, expected):
    program = await start("--echo")
    visit = await hub.next_visit()
    await visit.welcome()
    await visit.send(type="bye", reason=reason, retry=False)
    status, errors = await program.ended()
    assert status == expected
    assert reason in errors


async def test_a_bye_counts_although_the_pong_before_it_cannot_be_sent(hub, start):
    program = await start("--echo")
    visit = await hub.next_visit()
    await visit.welcome()
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
    visit = await hub.next_visit()
    await visit.welcome()
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
    visit = await hub.next_visit()
    await visit.welcome()
    await visit.ask("go")
    assert (await visit.receive())["payload"]["text"] == "begun\n"
    program.signal(signal.SIGTERM)
    assert await visit.chunks() == ["ended\n"]
    assert (await program.ended())[0] == 0


async def test_a_second_signal_ends_it_and_its_commands_at_once(hub, start, lifeline, tmp_path):
    """Its commands are killed: none is asked to end, and given time."""
    asked = tmp_path / "asked"
    script = f"exec 9> {lifeline.path}; trap 'touch {asked}' TERM; echo on; sleep 60 & sleep 60; wait"
    program = await start("--exec", "sh", "-c", script)
    visit = await hub.next_visit()
    await visit.welcome()
    await visit.ask("go")
    await visit.receive()
    program.signal(signal.SIGINT)
    program.signal(signal.SIGTERM)  # the same again might come as one
    assert (await program.ended())[0] == 0
    await lifeline.all_gone()
    assert not asked.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--echo"], "--hub is missing (or set CLAWBRIDGE_HUB)"),
        (["--hub", "http://h", "--echo"], "--token is missing (or set CLAWBRIDGE_TOKEN)"),
        (["--hub", "ftp://h", "--token", "ck_live_x", "--echo"], "want an address"),
        (["--hub", "https://h/path?q", "--token", "ck_live_x", "--echo"], "want an address"),
        (["--hub", "http://h", "--token", "cw_sess_x", "--echo"], "begins with ck_live_"),
        (["--hub", "http://h", "--token", "ck_live_x", "--name", "Bad_Name", "--echo"], "want only a-z"),
        (["--hub", "http://h", "--token", "ck_live_x"], "want one of --echo, --exec CMD, --preset NAME and --mcp"),
        (["--hub", "http://h", "--token", "ck_live_x", "--echo", "--exec", "cat"], "want one of"),
        (["--hub", "http://h", "--token", "ck_live_x", "--exec", "--"], "want a command"),
        (["--hub", "http://h", "--token", "ck_live_x", "--echo", "cat"], "'cat' is in the way of --echo"),
        (["--bogus"], "unrecognized arguments"),
    ],
)
async def test_bad_arguments_are_one_clear_line_and_exit_code_2(start, arguments, complaint):
    status, errors = await (await start(*arguments, where=())).ended()
    assert status == 2
    assert complaint in errors
    assert errors.count("\n") == 1
