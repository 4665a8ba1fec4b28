"""`--preset claude --access ask`: what the program may do is decided by the operators of its session."""

import json
import sys

import pytest

from connect.frames import NOT_DECIDED
from connect.program_events import DENIED
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
