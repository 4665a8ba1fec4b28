"""A user of fasta2a asks by its `A2AClient`. Called as `with_adk` is.

OPTIONS: `streaming`, whether the user streams.
"""

import json
import uuid
from collections.abc import Iterable
from typing import Any

import httpx
from fasta2a.client import A2AClient
from fasta2a.schema import Message
from output import say, serve


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.options = options
        headers = {"Authorization": f"Bearer {token}"}
        self.client = A2AClient(url, httpx.AsyncClient(headers=headers, timeout=30))

    async def ask(self) -> None:
        asked: dict[str, str] = {}
        for text in self.options["texts"]:
            message = Message(role="user", parts=[{"text": text}], message_id=str(uuid.uuid4()), **asked)
            if self.options.get("streaming"):
                answers = [answer async for answer in self.client.stream_message(message)]
            else:
                answers = [await self.client.send_message(message)]
            results = [answer.get("result", {}) for answer in answers]
            say("answer", {"text": "".join(words_of(result) for result in results)})
            asked = named_by(results)


def words_of(result: dict[str, Any]) -> str:
    """The text of a result, without the progress of a task."""
    if "message" in result:
        return words_in(result["message"]["parts"])
    if "artifact_update" in result:
        return words_in(result["artifact_update"]["artifact"]["parts"])
    task = result.get("task") or result.get("status_update") or {"status": {"state": "working"}}
    said = [words_in(one["parts"]) for one in task.get("artifacts", ())]
    if task["status"]["state"] not in ("submitted", "working") and "message" in task["status"]:
        said.append(words_in(task["status"]["message"]["parts"]))
    return "\n".join(said)


def words_in(parts: Iterable[dict[str, Any]]) -> str:
    return "".join(part.get("text") or json.dumps(part.get("data") or part) for part in parts)


def named_by(results: list[dict[str, Any]]) -> dict[str, str]:
    """The ids that the next message names: the context, and the task if it waits for its caller."""
    context, task = "", ""
    for result in results:
        for one in result.values():
            context = one["context_id"]
            waits = one.get("status", {}).get("state") in ("input-required", "auth-required")
            task = (one.get("task_id") or one["id"]) if waits else ""
    return {"context_id": context} | ({"task_id": task} if task else {}) if context else {}


if __name__ == "__main__":
    serve(Scenarios)
