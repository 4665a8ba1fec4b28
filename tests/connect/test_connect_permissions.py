"""`--access ask`: the operators of the session decide what the program of a preset may do."""

import json
import sys

import pytest

from clawbridge.connect.codex_server import ASKING, begin_codex, read_codex_server
from clawbridge.connect.frames import NOT_DECIDED
from clawbridge.connect.program_events import DENIED, NOT_ANSWERED, ProgramOutput
from clawbridge.connect.reply_parts import Decision, Failed, ProgramPermissionRequest, Status, Usage
from tests.connect.command_lines import FEATURES

PROGRAM = """#!{python}
import json, sys
question = json.loads(sys.stdin.readline())
tool = {{"subtype": "can_use_tool", "tool_name": "Bash", "input": {{"command": "rm \\ud800" + "x" * {more}}}}}
for number, request in enumerate(({{"subtype": "mcp_message"}}, tool)):
    print(json.dumps({{"type": "control_request", "request_id": number, "request": request}}), flush=True)
heard = [json.loads(sys.stdin.readline())["response"] for _ in range(2)]
print(json.dumps({{"type": "result", "result": json.dumps([question, *heard])}}), flush=True)
sys.exit(len(sys.stdin.read()))
"""
DECISIONS = {
    "allowed": (FEATURES, 0, {"decision": "allow", "message": None}, ("allow", None)),
    "denied, by a hub that takes text alone": (None, 0, {"decision": "deny", "message": "no"}, ("deny", "no")),
    "denied, without a word": (FEATURES, 9_000, {"decision": "deny"}, ("deny", DENIED)),
    "not decided": (FEATURES, 0, {"decision": "expired", "message": None}, ("deny", NOT_DECIDED)),
}


@pytest.fixture
async def ask(online, tmp_path, monkeypatch):
    """The frame of the request, and the visit of the agent whose program makes it."""

    async def ask(features, more):
        program = tmp_path / "claude"
        program.write_text(PROGRAM.format(python=sys.executable, more=more))
        program.chmod(0o700)
        monkeypatch.setenv("PATH", str(tmp_path))
        options = ("--preset", "claude", "--access", "ask", "--directory", str(tmp_path))
        visit = await online(*options, features=features)
        await visit.ask("clean up")
        return await visit.receive(), visit

    return ask


@pytest.mark.parametrize(("features", "more", "decided", "heard"), DECISIONS.values(), ids=DECISIONS)
async def test_a_program_that_asks_gets_the_decision(ask, features, more, decided, heard):
    asked, visit = await ask(features, more)
    assert (asked["type"], asked["chatId"], asked["tool"]) == ("permission_request", "c1", "Bash")
    assert asked["inputPreview"].startswith('{"command": "rm ')
    assert len(asked["inputPreview"]) < 8_192  # where the hub cuts
    assert ("the first of 90" in asked["inputPreview"]) == (more > 0)
    await visit.send(type="permission_response", requestId="of another question", decision="allow")
    await visit.send(type="permission_response", requestId=asked["requestId"], **decided)
    question, refused, permitted = json.loads("".join(await visit.chunks()))
    assert question == {"type": "user", "message": {"role": "user", "content": "clean up"}}
    assert (refused["subtype"], refused["request_id"]) == ("error", 0)
    assert (permitted["subtype"], permitted["request_id"]) == ("success", 1)
    given = permitted["response"]
    assert (given["behavior"], given.get("message")) == heard
    assert ("updatedInput" in given) == (heard[0] == "allow")
    if "updatedInput" in given:
        assert given["updatedInput"] == {"command": "rm \ud800"}  # what the program wanted, not what was shown


async def test_a_request_that_the_hub_does_not_take_is_denied(ask):
    _, visit = await ask(FEATURES, 0)
    await visit.send(type="error", code="too_many_requests", message="too many permission requests wait already")
    *_, permitted = json.loads("".join(await visit.chunks()))
    assert (permitted["response"]["behavior"], permitted["response"]["message"]) == (
        "deny", "too many permission requests wait already",
    )  # fmt: skip


THREAD = {"threadId": "t1"}
CHANGE = {"type": "fileChange", "id": "call_1", "changes": [{"path": "a.txt", "diff": "hello"}]}
COMMAND = {"type": "commandExecution", "id": "call_2", "command": "make"}
TOTAL = {"total": {"inputTokens": 2406, "outputTokens": 160}}
STARTED = [{"id": 0, "result": {}}, {"id": 1, "result": {"thread": {"id": "t1"}}}, {"id": 2, "result": {}}]


def note(method, **params):
    return {"method": method, "params": THREAD | params}


@pytest.fixture
def codex():
    """Reads messages of Codex's server: the parts of the reply, the run, and the lines that went back."""
    output, written = ProgramOutput("codex", read_codex_server), []
    output.run.write_line = lambda line: written.append(json.loads(line))
    output.run.question = "clean up"

    def read(*messages):
        parts = [part for message in messages for part in output.feed(json.dumps(message) + "\n")]
        return parts, output.run, written

    return read


def test_codex_begins_or_continues_a_conversation_and_then_gets_the_question(codex):
    _, run, written = codex(*STARTED[:2])
    assert run.conversation_id == "t1"
    [turn] = written
    assert (turn["method"], turn["params"]["input"]) == ("turn/start", [{"type": "text", "text": "clean up"}])
    for conversation_id, method, more in (("", "thread/start", {}), ("t1", "thread/resume", THREAD)):
        *_, thread = (json.loads(line) for line in begin_codex(run, conversation_id))
        assert (thread["method"], thread["params"]) == (method, ASKING | more)


def test_codex_says_what_it_does_and_used(codex):
    parts, run, _ = codex(
        *STARTED,
        note("item/started", item=COMMAND),
        note("item/completed", item=COMMAND),
        note("item/completed", item=CHANGE),
        note("item/completed", item={"type": "agentMessage", "text": "It is clean."}),
        note("item/completed", item={"type": "agentMessage", "text": "of another"}, threadId="t2"),
        note("thread/tokenUsage/updated", tokenUsage=TOTAL),
        note("turn/completed", turn={"status": "completed"}),
    )
    tools = [part.metadata["tool"] for part in parts if isinstance(part, Status)]
    assert (tools, [part for part in parts if isinstance(part, str)]) == (
        ["command", "file change"],
        ["It is clean."],
    )
    assert (parts[-1], run.is_complete) == (Usage(input_tokens=2406, output_tokens=160), True)


@pytest.mark.parametrize(("is_allowed", "decided"), [(True, "accept"), (False, "decline")])
def test_codex_gets_the_decision_on_a_command_and_on_a_change_of_files(codex, is_allowed, decided):
    parts, _, written = codex(
        *STARTED,
        note("item/started", item=CHANGE),
        note("item/fileChange/requestApproval", itemId="call_1", reason=None) | {"id": 0},
        note("item/commandExecution/requestApproval", itemId="call_2", command="make", cwd="/work") | {"id": 1},
        note("item/tool/requestUserInput") | {"id": 2},
    )
    asked = [part for part in parts if isinstance(part, ProgramPermissionRequest)]
    wanted = [("file change", {"changes": CHANGE["changes"]}), ("command", {"command": "make", "cwd": "/work"})]
    assert [(one.tool, json.loads(one.input_preview)) for one in asked] == wanted
    assert (written[-1]["id"], written[-1]["error"]["message"]) == (2, NOT_ANSWERED)
    for number, one in enumerate(asked):
        one.on_decision(Decision(is_allowed))
        assert written[-1] == {"id": number, "result": {"decision": decided}}


def test_a_failure_of_codex_fails_the_task_and_a_lost_conversation_is_not_kept(codex):
    parts, run, written = codex({"id": 1, "error": {"code": -32600, "message": "no rollout found"}})
    assert (parts, run.conversation_id, run.is_complete, written) == ([Failed("no rollout found")], "", True, [])
    for turn, text in (
        ({"status": "failed", "error": {"message": "usage limit"}}, "usage limit"),
        ({"status": "interrupted"}, "the turn of Codex is interrupted"),
    ):
        parts, _, _ = codex(*STARTED, note("turn/completed", turn=turn))
        assert parts[-1] == Failed(text)


def test_rubbish_of_codex_is_no_answer(codex, subtests):
    for message in (
        7,
        {"method": []},
        {"method": "turn/completed"},
        {"method": "item/started", "params": 7},
        {"id": 1, "result": []},
        {"id": {}, "method": {}, "params": []},
        note("item/completed", item={"type": ["agentMessage"], "text": 7}),
        note("item/fileChange/requestApproval", itemId={}) | {"id": []},
    ):
        with subtests.test(message=message):
            parts, run, _ = codex(message)
            assert not [part for part in parts if not isinstance(part, ProgramPermissionRequest)]
            assert not run.is_complete
