"""`--mcp`: a tool of an MCP server answers; servers that fail fail one question each."""

import asyncio
import json
import logging
import shlex
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvicorn
from tool_server import server

from agents.pages.card_fields import SkillsField
from clawbridge.connect.__main__ import WANTS_SDK, main
from clawbridge.connect.answers import AnswerFailed, CannotStart
from clawbridge.connect.frames import Question
from clawbridge.connect.mcp_answer import build_mcp_answer
from clawbridge.connect.mcp_servers import MAX_LOGGED_LINES_PER_MINUTE, MAX_MESSAGE_BYTES
from clawbridge.connect.reply_parts import Artifact, Failed, Rejected, Status
from lab.waiting import eventually
from tests.connect.command_lines import FEATURES

HERE = Path(__file__).parent
LONG_S = 60.0
TOOL = {"name": "work", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
TEXT = {"type": "text", "text": "done"}


def command(script, *arguments):
    return shlex.join(
        [sys.executable, "-S" if script == "bad_tool_server.py" else "-u", str(HERE / script), *arguments]
    )


def tool(name, where=None, **options):
    return build_mcp_answer(where or command("tool_server.py"), name, **{"timeout_s": LONG_S, **options})


def bad_tool(tmp_path, **options):
    return tool("work", command("bad_tool_server.py", str(tmp_path)), **options)


async def ask(answer, text="", *parts):
    return [part async for part in answer(Question(chat_id="c", text=text, parts=list(parts)))]


@asynccontextmanager
async def serving(app):
    """An ASGI application on a free port of this loop; its origin."""
    part = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="on"))
    running = asyncio.create_task(part.serve())

    async def started():
        return part.started

    await eventually(started, "the server is up", every_s=0.02)
    try:
        yield f"http://127.0.0.1:{part.servers[0].sockets[0].getsockname()[1]}"
    finally:
        part.should_exit = part.force_exit = True
        await running


async def check_shout(make_tool):
    """Ask with text, with data, and with what the schema does not allow."""
    async with make_tool("shout") as answer:
        assert await ask(answer, "hé\n") == [Status(text="breathing in"), "HÉ\n"]
        assert (await ask(answer, "ignored", {"data": {"text": "a", "times": 2}}))[-1] == "A A"
        [refused] = await ask(answer, "", {"data": {"text": "a", "times": "2"}})
        assert isinstance(refused, Rejected)
        assert "times: '2' is not of type 'integer'" in refused.text
        assert '"required":["text"]' in refused.text


async def test_a_program_on_the_sdk_answers():
    await check_shout(tool)


@pytest.mark.parametrize("is_stateless", [False, True])
async def test_an_address_on_the_sdk_answers_with_text_files_and_data(is_stateless):
    async with serving(server.streamable_http_app(stateless_http=is_stateless)) as origin:
        await check_shout(lambda name: tool(name, f"{origin}/mcp"))
        await check_results(lambda name: tool(name, f"{origin}/mcp"))


async def check_results(make_tool):
    """Ask for files, for data, for a failure, and for a tool that is not there."""
    async with make_tool("show") as answer:
        text, *artifacts = await ask(answer, "anything")
        assert text == "here:\nnotes: memo://1"
        assert [one.parts for one in artifacts] == [
            [{"raw": "iVBORw0KGgo=", "filename": "result-2.png", "mediaType": "image/png"}],
            [{"raw": "YWI=", "filename": "a.bin"}],
            [{"url": "https://example.org/page", "filename": "page", "mediaType": "text/html"}],
            [{"data": {"count": 4}, "mediaType": "application/json"}],
        ]
        assert all(isinstance(one, Artifact) for one in artifacts)
    async with make_tool("refuse") as answer:
        assert await ask(answer) == [Failed("Error executing tool refuse")]
    with pytest.raises(CannotStart, match="no tool 'nope'; its tools are shout, add, show, refuse"):
        await make_tool("nope").__aenter__()


FAILURES = [
    ("die", "the MCP server ended: command failed with exit status 3"),
    ("rubbish", "the MCP server prints lines that are no messages of MCP"),
    ("endless line", f"the MCP server printed a line of more than {MAX_MESSAGE_BYTES} bytes"),
    ("wrong result", "the result of the MCP server is not as MCP or its schema wants"),
]


async def test_each_failure_has_its_text_and_the_next_question_a_new_server(tmp_path, subtests):
    async with bad_tool(tmp_path) as answer:
        [before] = await ask(answer, "pid")
        for order, text in FAILURES:
            with subtests.test(order=order):
                with pytest.raises(AnswerFailed) as failed:
                    await ask(answer, order)
                assert str(failed.value) == text
                [after] = await ask(answer, "pid")
                assert after != before
                before = after
        with pytest.raises(AnswerFailed, match="the MCP server refused the call: no such word"):
            await ask(answer, "refuse")
        assert await ask(answer, "pid") == [after]


async def test_a_server_that_hangs_is_left_alone_and_replaced(tmp_path):
    async with bad_tool(tmp_path, timeout_s=0.5) as answer:
        with pytest.raises(AnswerFailed, match=r"the MCP server did not answer within 0\.5 s"):
            await ask(answer, "hang")
        assert (await answer.find_tool()).name == "work"


async def seen(path):
    return path.exists()


async def test_a_dropped_question_is_cancelled_at_the_server_and_others_go_on(tmp_path):
    async with bad_tool(tmp_path) as answer:
        [before] = await ask(answer, "pid")
        dropped = asyncio.create_task(ask(answer, "hang"))
        await eventually(lambda: seen(tmp_path / "hangs"), "the server has the question")
        dropped.cancel()
        await asyncio.wait({dropped})
        assert dropped.cancelled()
        await eventually(lambda: seen(tmp_path / "cancelled"), "the server was told")
        assert await ask(answer, "pid") == [before]


async def test_what_a_server_leaves_ends_with_it(tmp_path, lifeline):
    (tmp_path / "stubborn").touch()
    async with bad_tool(tmp_path) as answer:
        await ask(answer, "leave a child")
        answer.kill()
    await lifeline.all_gone()


async def test_notes_and_standard_error_are_bounded_and_no_token_is_passed_on(tmp_path, caplog, monkeypatch):
    monkeypatch.setenv("CLAWBRIDGE_TOKEN", "ck_live_x")
    monkeypatch.setenv("A_TOKEN", "x")
    with caplog.at_level(logging.INFO, "clawbridge.connect.mcp_servers"):
        async with bad_tool(tmp_path) as answer:
            *notes, text = await ask(answer, "notes")
            assert text == "noted"
            assert all(isinstance(note, Status) and note.text.endswith(" of 2000") for note in notes)
            assert await ask(answer, "environment") == ["A_TOKEN"]
            assert await ask(answer, "errors") == ["logged"]
    logged = [line for line in caplog.messages if line.endswith(": a line")]
    assert len(logged) == MAX_LOGGED_LINES_PER_MINUTE
    assert f"{sys.executable} prints more than is logged" in caplog.messages


BODIES = [
    (401, {}, b"no"),
    (200, {"content-type": "application/json"}, b" " * (MAX_MESSAGE_BYTES + 1)),
    (200, {"content-type": "application/json", "content-encoding": "gzip"}, b"bomb"),
    (200, {"content-type": "text/event-stream"}, b"data: " + b"x" * (MAX_MESSAGE_BYTES + 1)),
    (307, {"location": "http://127.0.0.1:1/other"}, b""),
]


async def test_an_address_that_speaks_no_mcp_is_one_line(subtests):
    bodies = iter(BODIES)

    async def app(scope, receive, send):
        if scope["type"] == "http":
            status, headers, body = next(bodies)
            named = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": status, "headers": named})
            await send({"type": "http.response.body", "body": body})

    async with serving(app) as origin:
        addresses = (*[f"{origin}/mcp"] * len(BODIES), "http://127.0.0.1:1/mcp")  # no server is at the last one
        for number, where in enumerate(addresses):
            with (
                subtests.test(number=number, where=where),
                pytest.raises(CannotStart, match="cannot be reached, or does not speak MCP"),
            ):
                await tool("shout", where).__aenter__()


async def test_a_session_that_the_server_ended_is_begun_anew():
    sessions, calls = [], []

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            return
        message = json.loads((await receive())["body"] or "null")
        session = dict(scope["headers"]).get(b"mcp-session-id", b"").decode()
        method, headers, body = message and message["method"], [(b"content-type", b"application/json")], b""
        status, results = 200, {"tools/list": {"tools": [TOOL]}, "tools/call": {"content": [TEXT]}}
        if method == "initialize":
            sessions.append(f"s{len(sessions)}")
            headers.append((b"mcp-session-id", sessions[-1].encode()))
            answer = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "a", "version": "1"},
            }
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}).encode()
        elif method in results and session == sessions[-1]:
            calls.append(method)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[method]}).encode()
        elif method and "id" in message:
            status = 404
            error = {"code": -32001, "message": "Session not found"}
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        else:
            status = 202 if method else 405
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async with serving(app) as origin, tool("work", f"{origin}/mcp") as answer:
        assert await ask(answer, "one") == ["done"]
        sessions.append("another")
        assert await ask(answer, "two") == ["done"]
        assert (sessions, calls) == (["s0", "another", "s2"], ["tools/list", "tools/call"] * 2)


async def test_the_command_line_answers_and_ends_its_server(hub, start, tmp_path, lifeline):
    program = await start("--mcp", command("bad_tool_server.py", str(tmp_path)), "--tool", "work")
    visit = await hub.welcome(features=FEATURES)
    assert (await visit.answer("leave a child")).isdecimal()
    await visit.ask("", parts=[{"data": ["work"]}])
    payload = (await visit.receive())["payload"]
    assert (payload["state"], "want a JSON object" in payload["text"]) == ("rejected", True)
    await visit.ask("die")
    payload = (await visit.receive())["payload"]
    assert (payload["state"], "exit status 3" in payload["text"]) == ("failed", True)
    assert (await visit.answer("pid")).isdecimal()
    program.signal(15)
    assert (await program.ended())[0] == 0
    await lifeline.all_gone()


def test_the_skill_is_printed_as_the_form_of_the_card_reads_it(capsys, tmp_path):
    where = command("bad_tool_server.py", str(tmp_path))
    assert main(["--mcp", where, "--tool", "work", "--skill"]) == 0
    [skill] = SkillsField().clean(capsys.readouterr().out)
    assert skill == {
        "id": "work",
        "name": "work",
        "description": 'work\nArguments, as a JSON Schema: {"type":"object",'
        '"properties":{"text":{"type":"string"}},"required":["text"]}',
        "tags": ["mcp"],
        "inputModes": ["text/plain", "application/json"],
    }


async def test_a_signal_ends_the_server_too_while_the_skill_is_read(start, lifeline, tmp_path):
    started = tmp_path / "started"
    script = f"trap '' TERM; exec 3>{lifeline.path}; touch {started}; while :; do sleep 1; done"
    program = await start("--mcp", shlex.join(["sh", "-c", script]), "--tool", "x", "--skill", where=())
    await eventually(lambda: seen(started), "the server has started")
    program.signal(15)
    status, errors = await program.ended()
    assert (status, "Traceback" in errors) == (0, False)
    await lifeline.all_gone()


REFUSED = [
    (("--mcp", "cat", "--echo"), "want one of --echo, --exec CMD, --preset NAME and --mcp SERVER"),
    (("--mcp", "cat", "more"), "'more' is in the way of --mcp"),
    (("--mcp", "no-such-program -y"), "want an http address, or a command that is installed"),
    (("--mcp", "'"), "--mcp: No closing quotation"),
    (("--mcp", "http://"), "want an address such as"),
    (("--mcp", "cat", "--tool-timeout", "0"), "--tool-timeout: want seconds above 0"),
    (("--mcp", "cat", "--tool-timeout", "nan"), "--tool-timeout: want seconds above 0"),
    (("--echo", "--tool", "x"), "--tool and --tool-timeout: want --mcp SERVER"),
    (("--echo", "--skill"), "--skill: want --mcp SERVER"),
    (("--mcp", "BAD", "--tool", "x"), "--mcp: the MCP server has no tool 'x'; its tools are work"),
    (("--mcp", "BAD"), "--mcp: want --tool NAME; its tools are work"),
    (("--mcp", "false", "--tool", "x"), "--mcp: the MCP server ended: command failed with exit status 1"),
]


def test_what_cannot_begin_is_one_line(capsys, tmp_path, subtests):
    place = ("--hub", "http://127.0.0.1:1", "--token", "ck_live_x", "--new-session")
    for arguments, error in REFUSED:
        with subtests.test(arguments=arguments):
            given = [one.replace("BAD", command("bad_tool_server.py", str(tmp_path))) for one in arguments]
            assert main([*place, *given]) == 2
            last = capsys.readouterr().err.splitlines()[-1]
            assert last.startswith("connect: ")
            assert error in last


async def test_connect_pyz_without_the_sdk_says_what_to_install(start, tmp_path, pyz):
    program = await start("--mcp", "cat", command=pyz, cwd=tmp_path)
    status, errors = await program.ended()
    assert (status, errors) == (2, f"connect: {WANTS_SDK}\n")
