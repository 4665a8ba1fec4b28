"""`--preset`: small programs print what the coding agents print, in versions of clawbridge/connect/README.md."""

import json
import stat
from pathlib import Path

import pytest

from clawbridge.connect.frames import Question
from clawbridge.connect.preset_answer import MAX_CONVERSATIONS, ProgramConversations, as_prompt
from clawbridge.connect.presets import PRESETS
from clawbridge.connect.program_events import MAX_EVENT_CHARS, ProgramOutput
from clawbridge.connect.reply_parts import Failed, Status, Usage
from tests.connect.command_lines import FEATURES

SESSION = "f0a0a4a1-acdf-4c78-b730-2c044b4d775d"


def delta(text):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def claude(event, **more):
    return {"type": "stream_event", "event": event, "session_id": SESSION, "parent_tool_use_id": None, **more}


CLAUDE_INIT = {"type": "system", "subtype": "init", "session_id": SESSION, "tools": ["Read"], "model": "opus"}
CLAUDE_USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 1000,
    "cache_read_input_tokens": 200,
    "output_tokens": 80,
}
RECORDED = {
    "claude": [
        CLAUDE_INIT,
        {"type": "system", "subtype": "status", "status": "requesting", "session_id": SESSION},
        claude({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        claude(delta("Let me ")),
        claude(delta("look.")),
        {
            "type": "assistant",
            "message": {
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/home/me/secret"}},
                ]
            },
            "parent_tool_use_id": None,
            "session_id": SESSION,
        },
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}},
        claude(delta("from a subagent"), parent_tool_use_id="t1"),
        claude({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        claude(delta("It is 42.")),
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "result": "It is 42.",
            "session_id": SESSION,
            "total_cost_usd": 0.042,
            "usage": CLAUDE_USAGE,
        },
    ],
    "codex": [
        {"type": "thread.started", "thread_id": SESSION},
        {"type": "turn.started"},
        {"type": "error", "message": "Reconnecting... 2/5 (stream disconnected before completion)"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "reasoning", "text": "**Looking**"}},
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "Let me look."}},
        {
            "type": "item.started",
            "item": {
                "id": "item_2",
                "type": "command_execution",
                "command": "bash -lc ls",
                "status": "in_progress",
            },
        },
        {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "It is 42."}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 1203, "cached_input_tokens": 200, "output_tokens": 80},
        },
    ],
    "gemini": [
        {"type": "init", "timestamp": "2026-11-23T03:46:48.211Z", "session_id": SESSION, "model": "auto"},
        {"type": "message", "role": "user", "content": "hello\n"},
        {"type": "message", "role": "assistant", "content": "Let me ", "delta": True},
        {"type": "message", "role": "assistant", "content": "look.", "delta": True},
        {"type": "tool_use", "tool_name": "read_file", "tool_id": "r-1", "parameters": {"path": "secret"}},
        {"type": "tool_result", "tool_id": "r-1", "status": "success", "output": "x"},
        {"type": "message", "role": "assistant", "content": "It is 42.", "delta": True},
        {
            "type": "result",
            "status": "success",
            "stats": {"total_tokens": 1283, "input_tokens": 1203, "output_tokens": 80, "tool_calls": 1},
        },
    ],
    "openclaw": {
        "payloads": [{"text": "Let me look.", "mediaUrl": None}, {"text": "It is 42."}],
        "meta": {"agentMeta": {"sessionId": SESSION, "usage": {"input": 1203, "output": 80, "total": 1283}}},
    },
    "llm": [
        {
            "id": "01m838gnxhzzpn8xr6a29r8a09",
            "conversation_id": SESSION,
            "input_tokens": 1203,
            "output_tokens": 80,
            "response": "Let me look.\n\nIt is 42.",
        }
    ],
}
TOOLS = {"claude": ["Read"], "codex": ["command"], "gemini": ["read_file"], "openclaw": [], "llm": []}


def printed(name, events=None):
    events = RECORDED[name] if events is None else events
    if PRESETS[name].is_one_value:
        return json.dumps(events, indent=2) + "\n"
    return "".join(json.dumps(event) + "\n" for event in events)


def read(name, text, *, step=0):
    """The parts that a preset reads in an output that comes in pieces of `step` characters."""
    output = ProgramOutput(name, PRESETS[name].read_event, is_one_value=PRESETS[name].is_one_value)
    parts = []
    for at in range(0, len(text), step or len(text) or 1):
        parts += output.feed(text[at : at + (step or len(text))])
    return [*parts, *output.finish()], output.run


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_output_is_text_tools_usage_and_a_conversation(name):
    for step in (0, 7):
        parts, run = read(name, f"a log line\n{printed(name)}", step=step)
        texts = [part for part in parts if isinstance(part, str)]
        assert "".join(texts) == "Let me look.\n\nIt is 42."
        assert [part.metadata["tool"] for part in parts if isinstance(part, Status)] == TOOLS[name]
        cost = 0.042 if name == "claude" else None
        assert parts[-1] == Usage(input_tokens=1203, output_tokens=80, cost_usd=cost)
        assert "secret" not in repr(parts)
        assert (run.conversation_id, run.is_complete) == (SESSION, True)


FAILURES = {
    "claude": {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "result": "Not logged in · Please run /login",
        "session_id": SESSION,
    },
    "codex": {"type": "turn.failed", "error": {"message": "usage limit"}},
    "gemini": {"type": "result", "status": "error", "error": {"type": "Error", "message": "quota"}},
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_that_the_program_reports_fails_the_task(name):
    parts, _ = read(name, printed(name, [FAILURES[name]]))
    assert isinstance(parts[-1], Failed)
    assert parts[-1].text in json.dumps(FAILURES[name], ensure_ascii=False)


def test_a_lost_conversation_of_claude_is_not_kept():
    lost = "No conversation found with session ID: " + SESSION
    result = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": [lost]}
    parts, run = read("claude", f"{lost}\n" + printed("claude", [result | {"session_id": SESSION}]))
    assert (parts, run.conversation_id) == ([Failed(lost)], "")


def test_codex_counts_a_whole_conversation_and_a_turn_has_its_own_usage(subtests):
    for before, wanted in (
        ((0, 0), [Usage(input_tokens=1203, output_tokens=80)]),
        ([1000, 50], [Usage(input_tokens=203, output_tokens=30)]),
        ([2000, 90], [Usage(input_tokens=1203, output_tokens=80)]),  # codex counts anew
        ((), []),  # the numbers of the turns before are not known
    ):
        with subtests.test(before=before):
            output = ProgramOutput("codex", PRESETS["codex"].read_event)
            output.run.counted = before
            parts = list(output.feed(printed("codex")))
            assert [part for part in parts if isinstance(part, Usage)] == wanted
            assert output.run.counted == [1203, 80]


@pytest.mark.parametrize("name", RECORDED)
def test_rubbish_is_a_failure_and_not_an_answer(name, subtests):
    for text in ("", "rubbish\n", "[" * 100_000, "null\n7\n[[1]]\n", '{"type":[]}\n', "x" * (MAX_EVENT_CHARS + 1)):
        with subtests.test(text=text):
            parts, run = read(name, text)
            assert (parts, run.is_complete) == ([], False)
    for event in WRONG:  # members of the wrong kind are left out
        with subtests.test(event=event):
            parts, _ = read(name, printed(name, [event]))
            assert not [part for part in parts if isinstance(part, Usage)]


WRONG = [
    {"type": "result", "usage": {"input_tokens": "many", "output_tokens": -1}, "total_cost_usd": "free"},
    {"type": "stream_event", "event": 7},
    {"type": "assistant", "message": {"content": [7, {"type": "tool_use", "name": None}]}},
    {"type": "item.started", "item": {"type": "mcp_tool_call", "tool": ["x"]}},
    {"type": "turn.completed", "usage": {"input_tokens": 1.5}},
    {"type": "message", "role": "assistant", "content": {}},
    {"payloads": [{"text": None}, 7], "meta": [], "result": []},
    {"response": "x", "input_tokens": True},
]


def test_reading_is_the_default_and_no_preset_skips_its_programs_checks(subtests):
    for name, preset in PRESETS.items():
        with subtests.test(preset=name):
            read_only = preset.argv(access="read", extra=["--model", "m"], conversation_id="", is_known=False)
            asking = preset.argv(access="ask", extra=(), conversation_id="", is_known=False)
            both = [
                *read_only,
                *asking,
                *preset.argv(access="write", extra=(), conversation_id=SESSION, is_known=True),
            ]
            assert read_only[0] == preset.program
            assert not [one for one in both if "danger" in one or one in ("yolo", "bypassPermissions")]
            assert SESSION in both
    claude, codex, gemini = (PRESETS[name].read_only for name in ("claude", "codex", "gemini"))
    assert claude[-4:] == ("--permission-mode", "dontAsk", "--tools", "Read,Glob,Grep")
    assert codex[-2:] == ("--sandbox", "read-only")
    assert gemini[-2:] == ("--approval-mode", "plan")


def test_a_question_is_no_command_of_the_program():
    for text in ("/config", " /clear", "!ls", "@/etc/passwd", "# note"):
        assert as_prompt(text) == f"Question: {text}"
    assert as_prompt("what is 6 * 7?") == "what is 6 * 7?"


@pytest.fixture
def installed(tmp_path):
    """Install a program under a preset's name that keeps what it got and prints what was recorded."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def installed(name, text, status=0):
        (tmp_path / "printed").write_text(text)
        program = folder / name
        program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/arguments"\npwd > "{tmp_path}/cwd"\n'
            f'cat > "{tmp_path}/question"\ncat "{tmp_path}/printed"\nexit {status}\n'
        )
        program.chmod(0o700)
        return f"{folder}:/usr/bin:/bin"

    return installed


async def test_a_preset_answers_and_continues_the_callers_conversation(hub, start, installed, tmp_path):
    path = installed("claude", printed("claude"))
    work = tmp_path / "work"
    work.mkdir()
    options = ("--name", "coder", "--preset", "claude", "--directory", str(work), "--", "--model", "opus")

    async def ask(visit, asker, text="/help me"):
        await visit.ask(text, contextId="C", askerUser=asker)
        events = [await visit.receive()]
        while not events[-1]["payload"].get("done"):
            events.append(await visit.receive())
        return events, (tmp_path / "arguments").read_text().splitlines()

    program = await start(*options, PATH=path)
    visit = await hub.welcome(features=FEATURES)
    events, arguments = await ask(visit, "alice")
    assert [event["payload"].get("text") for event in events if event["eventType"] == "task_status"] == [
        "Using Read"
    ]
    assert events[-1]["payload"]["usage"] == {"inputTokens": 1203, "outputTokens": 80, "costUsd": 0.042}
    assert (tmp_path / "question").read_text() == "Question: /help me"
    assert Path((tmp_path / "cwd").read_text().strip()) == work.resolve()
    assert arguments[-2:] == ["--model", "opus"]
    assert (await ask(visit, "alice"))[1][-2:] == ["--resume", SESSION]
    assert "--resume" not in (await ask(visit, "bob"))[1]
    program.signal(15)
    await program.ended()
    await start(*options, PATH=path)
    visit = await hub.welcome(features=FEATURES)
    assert (await ask(visit, "alice"))[1][-2:] == ["--resume", SESSION]
    [stored] = (tmp_path / "state" / "clawbridge").glob("*.conversations")
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert "alice" not in stored.read_text()


async def test_a_program_that_dies_or_prints_rubbish_fails_the_task(
    online, installed, tmp_path, monkeypatch, subtests
):
    for status, text in (
        (3, "command failed with exit status 3"),
        (0, "codex ended without an answer that this connector can read"),
    ):
        monkeypatch.setenv("PATH", installed("codex", "rubbish\n", status=status))
        visit = await online("--preset", "codex", "--directory", str(tmp_path), features=FEATURES)
        with subtests.test(status=status):
            await visit.ask("hi")
            payload = (await visit.receive())["payload"]
            assert (payload["state"], payload["text"]) == ("failed", text)


async def remember(conversations, context_id, program_id, asker="alice"):
    question = Question(chat_id="c", text="", asker=asker, context_id=context_id)
    async with conversations.claim(question) as conversation:
        before, conversation.program_id = conversation.program_id, program_id
    return before


async def test_what_a_program_counted_is_kept_with_its_conversation(tmp_path):
    path = tmp_path / "a.conversations"
    question = Question(chat_id="c", text="", asker="alice", context_id="c0")
    await remember(ProgramConversations(path, place=""), "c0", "p0")
    for before, after in (((), [7, 5]), ([7, 5], [9, 6]), ([9, 6], [9, 6])):
        async with ProgramConversations(path, place="").claim(question) as conversation:
            assert (conversation.program_id, [*conversation.counted]) == ("p0", [*before])
            conversation.counted = after
    [key] = json.loads(path.read_text())
    for rubbish in (7, [], ["p0", 1], [7, 1, 2], {"p0": 1}):
        path.write_text(json.dumps({key: rubbish}))
        assert await remember(ProgramConversations(path, place=""), "c0", "") == ""


async def test_conversations_are_bounded_and_apart(tmp_path):
    path = tmp_path / "a.conversations"
    conversations = ProgramConversations(path, place="claude /work")
    assert await remember(conversations, "", "none") == ""
    assert not path.exists()
    await remember(conversations, "c0", "p0")
    assert await remember(conversations, "c0", "p0") == "p0"
    assert await remember(conversations, "c0", "p0", asker="bob") == ""
    assert await remember(ProgramConversations(path, place="claude /other"), "c0", "") == ""
    assert await remember(ProgramConversations(path, place="claude /work"), "c0", "") == "p0"
    path.write_text("[1]")
    assert await remember(ProgramConversations(path, place="claude /work"), "c0", "") == ""
    many = ProgramConversations(None, place="")
    for number in range(MAX_CONVERSATIONS + 1):
        await remember(many, f"c{number}", f"p{number}")
    assert await remember(many, "c0", "") == ""  # the oldest was dropped
    assert await remember(many, "c2", "") == "p2"
