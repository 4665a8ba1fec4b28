"""The session to which `connect` comes back, and the source of its token."""

import signal

import pytest

SESSION = "5a0c4b6e-7b4e-4a43-9a0f-3f6f8f1f0001"
OTHER = SESSION.replace("0001", "0002")


async def one_stay(hub, start, *arguments, session=SESSION, **environ):
    """Connect, be given a session, and stop; the session that was asked for."""
    program = await start("--echo", *arguments, **environ)
    visit = await hub.next_visit()
    asked_for = (await visit.welcome(session))["sessionId"]
    await program.line()
    program.signal(signal.SIGTERM)
    assert (await program.ended())[0] == 0
    return asked_for


async def test_a_restart_keeps_the_session_by_itself(hub, start, tmp_path):
    assert await one_stay(hub, start, "--name", "bot") is None
    assert await one_stay(hub, start, "--name", "bot", "--new-session", session=OTHER) is None  # it is not kept
    assert await one_stay(hub, start, "--name", "bot") == SESSION
    assert await one_stay(hub, start, "--name", "another", session=OTHER) is None
    [file] = (tmp_path / "state" / "clawbridge").glob("bot-*.session")
    assert file.read_text() == f"{SESSION}\n"
    assert file.stat().st_mode & 0o077 == 0


async def test_two_at_once_do_not_take_the_session_from_each_other(hub, start):
    await start("--name", "bot", "--echo")
    first = await hub.welcome(SESSION)
    second = await start("--name", "bot", "--echo")
    assert "in use by another process" in await second.line()
    visit = await hub.next_visit()
    assert (await visit.welcome(OTHER))["sessionId"] is None
    await first.ask("still there?")
    assert (await first.receive())["payload"]["text"] == "still there?"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"XDG_STATE_HOME": "/dev/null/nowhere"}, "is not usable"),
        ({"XDG_STATE_HOME": "", "HOME": "~"}, "no home directory"),
    ],
    ids=["a folder that cannot be made", "no home directory"],
)
async def test_a_state_that_cannot_be_written_costs_a_warning(hub, start, environ, told):
    program = await start("--name", "bot", "--echo", **environ)
    await hub.welcome(SESSION)
    assert told in await program.line()
    assert "connected as" in await program.line()


async def test_the_token_may_come_from_a_file(hub, start, tmp_path):
    file = tmp_path / "token"
    file.write_text("ck_live_from_a_file\n")
    await start("--echo", where=("--hub", hub.url, "--token-file", str(file)))
    visit = await hub.next_visit()
    assert visit.headers["Authorization"] == "Bearer ck_live_from_a_file"
