"""Turns of the real server of A2A 0.3 (`programs/server_03.py`), asked directly and through a hub."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from kit.ids import unguessable
from lab.callers import TLS, envelope
from lab.processes import Program, free_port, printed
from tests.sdks.environments import ENVIRONMENTS

Json = dict[str, Any]
Turn = list[Json]
PROGRAM = Path(__file__).parent / "programs" / "server_03.py"
WITHIN_S = 30
IDS = ("messageId", "contextId", "taskId")


@contextmanager
def server_03(log: Path) -> Iterator[str]:
    """Run the server; its address. Raises Missing when its environment cannot be installed."""
    port = free_port()
    python = ENVIRONMENTS["python-0.3"].ready() / "bin" / "python"
    with Program([str(python), str(PROGRAM), str(port)], log, env={}, is_ready=printed("serving")):
        yield f"http://127.0.0.1:{port}"


async def play(url: str, turns: Sequence[Turn], *, streams: bool, token: str = "") -> list[Any]:
    """Ask for the turns of one task: the answers to each turn, then the task that `tasks/get` shows."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    seen: list[Any] = []
    task: Json = {}
    async with httpx.AsyncClient(headers=headers, timeout=WITHIN_S, trust_env=False, verify=TLS) as http:

        async def answers(method: str, params: Json) -> list[Json]:
            text = (await http.post(url, json=envelope(method, params))).text
            lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
            return [json.loads(line)["result"] for line in (lines if streams and lines else [text])]

        for steps in turns:
            message = {
                "kind": "message",
                "role": "user",
                "messageId": unguessable(),
                "parts": [{"kind": "text", "text": json.dumps({"steps": steps})}],
                **({"taskId": task["id"], "contextId": task["contextId"]} if task else {}),
            }
            answered = await answers("message/stream" if streams else "message/send", {"message": message})
            task = next((one for one in answered if one["kind"] == "task"), task)
            seen.append(told(answered))
        if task:
            [kept] = await answers("tasks/get", {"id": task["id"], "historyLength": 100})
            seen.append(plain(kept))
    return seen


def told(answers: Sequence[Json]) -> list[Json]:
    """The answers with news: without the task as it begins, and without states of progress that have no words."""
    shown = [plain(one) for one in answers]
    return [one for one in shown if not (is_under_way(one) and one["status"].keys() == {"state"})]


def is_under_way(one: Json) -> bool:
    return "status" in one and one["status"]["state"] in ("submitted", "working")


def plain(answer: Json) -> Json:
    """An answer without what servers write as they like: ids, times, defaults.

    The message of a state is the last of the history at some servers, at others once the state is over. `final` of
    a state that asks is true at some, and false at others (docs/adr/0046).
    """
    shown = without_ids(answer)
    shown.pop("id", None)
    if "status" in shown:
        shown["status"] = {name: value for name, value in shown["status"].items() if name != "timestamp"}
        shown.pop("final", None)
    if shown["kind"] == "artifact-update":
        shown |= {name: bool(shown.get(name)) for name in ("append", "lastChunk")}
    history = shown.get("history", [])
    if history and history[-1] == shown["status"].get("message"):
        shown["history"] = history[:-1]
    return shown


def without_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [without_ids(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: without_ids(one) for name, one in value.items() if name not in IDS}
