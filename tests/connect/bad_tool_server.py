"""An MCP server without a library, whose tool `work` does what it is told: `python bad_tool_server.py FOLDER`."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(sys.argv[1])
TOOL = {
    "name": "work",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "serverInfo": {"name": "bad", "version": "1"},
    },
    "tools/list": {"tools": [TOOL]},
}


def say(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def write(text):
    sys.stdout.write(text)
    sys.stdout.flush()


def work(order, call_id, token):
    if order == "hang":
        (FOLDER / "hangs").touch()
    elif order == "die":
        sys.exit(3)
    elif order == "rubbish":
        write("rubbish\n" * 2_000)
    elif order == "endless line":
        write("x" * 100_000_000)
    elif order == "wrong result":
        say(id=call_id, result={"content": 7})
    elif order == "refuse":
        say(id=call_id, error={"code": -32602, "message": "no such word"})
    elif order == "notes":
        for number in range(2_000):
            say(
                method="notifications/progress",
                params={"progressToken": token, "progress": number, "total": 2_000},
            )
        answer(call_id, "noted")
    elif order == "errors":
        sys.stderr.write("a line\n" * 10_000)
        answer(call_id, "logged")
    elif order == "leave a child":
        child = subprocess.Popen(["sleep", "600"], pass_fds=[os.open(FOLDER / "lifeline", os.O_WRONLY)])
        answer(call_id, str(child.pid))
    elif order == "environment":
        answer(call_id, " ".join(sorted(name for name in os.environ if "TOKEN" in name)))
    else:
        answer(call_id, str(os.getpid()))


def answer(call_id, text):
    say(id=call_id, result={"content": [{"type": "text", "text": text}]})


write("Server started\n")  # as many servers do, against the rules
while line := sys.stdin.readline():
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "notifications/cancelled":
        (FOLDER / "cancelled").touch()
    elif method in ANSWERS:
        say(id=message["id"], result=ANSWERS[method])
    elif method == "tools/call":
        work(params["arguments"]["text"], message["id"], params.get("_meta", {}).get("progressToken"))
    elif "id" in message:
        say(id=message["id"], error={"code": -32601, "message": "no such method"})
while (FOLDER / "stubborn").exists():
    time.sleep(0.05)
