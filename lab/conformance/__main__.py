"""`python -m lab.conformance KIT --python KIT_PYTHON`: run the A2A conformance kit against a new hub.

KIT is a checkout of a2aproject/a2a-tck, KIT_PYTHON a Python with the packages that the kit needs. The kit
writes its report into KIT; `make conformance` records it (docs/howto/test.md).
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from lab import ROOT
from lab.agents import TaskPeer, online
from lab.callers import Json, rpc_path
from lab.hub_process import HubProcess
from lab.hub_storage import storages

# By the beginning of `messageId`, the longest first: steps of `TaskPeer`.
SCENARIOS = {
    "tck-stream-artifact-chunked": "note working | text a chunk-1 | last a chunk-2 | complete",
    "test-resubscribe-message-id": "note working | rest 4 | complete",
    "tck-stream-artifact-text": "note working | text a Streamed text content | complete",
    "tck-stream-artifact-file": "note working | raw output tck | complete",
    "tck-stream-ordering-001": "note working | text a Ordered output | complete",
    "tck-input-required": "ask input required",
    "tck-complete-task": "reply Hello from TCK",
    "tck-artifact-text": "text a Generated text content | complete",
    "tck-artifact-file": "raw output tck | complete",
    "tck-artifact-data": 'data a {"key": "value", "count": 42} | complete',
    "tck-reject-task": "reject rejected",
    "tck-stream-001": "note working | text a Stream hello from TCK | complete",
    "tck-stream-002": "complete",
    "tck-stream-003": "note working | text a Stream task lifecycle | complete",
}
DIRECT = "tck-message-response"
WITH_URL = "tck-artifact-file-url"
FILE = {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}


class KitAgent(TaskPeer):
    """Answers by scenario, and echoes every other message."""

    async def answer(self, prompt: Json) -> None:
        chat_id, message_id = prompt["chatId"], prompt.get("messageId", "")
        if message_id.startswith(DIRECT):
            await self.reply(chat_id, "Direct message response", direct=True)
            return
        if message_id.startswith(WITH_URL):
            await self.artifact(chat_id, "a", FILE)
            await self.status(chat_id, "completed")
            return
        steps: Any = next((steps for begins, steps in SCENARIOS.items() if message_id.startswith(begins)), None)
        await super().answer(prompt if steps is None else {**prompt, "text": steps})


HOMES = ("embedded", "grown")
# The kit receives pushes on this machine; the hub's durations are those of production.
SETTINGS: dict[str, Any] = {"WEBHOOK_ALLOW_PRIVATE": 1, "WEBHOOK_PORTS": "", "TEST_TIME_SCALE": 1}


def main() -> int:
    """Run the kit against a new hub; the exit code is the kit's."""
    parser = argparse.ArgumentParser(prog="python -m lab.conformance", description=__doc__)
    parser.add_argument("kit", type=Path, help="a checkout of the kit")
    parser.add_argument("--python", type=Path, required=True, help="the Python of the kit's environment")
    parser.add_argument("--home", choices=HOMES, default="embedded")
    parser.add_argument("--below", default="/v1", help="the address to test, below the agent's base (default /v1)")
    parser.add_argument("options", nargs="*", help="for the kit's pytest, behind --")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as name,
        storages(Path(name), is_distributed=asked.home == "grown") as new_storage,
    ):
        home = new_storage()
        processes = 2 if home.is_grown else 1
        with HubProcess.start(home, processes=processes, worker=home.is_grown, **SETTINGS) as hub:
            return asyncio.run(_run(hub, asked))


async def _run(hub: HubProcess, asked: argparse.Namespace) -> int:
    """Run the kit against the first process of a hub; the agent is connected to the last."""
    async with online(hub, KitAgent, at=len(hub.urls) - 1, agent={"name": "kit agent"}) as agent:
        report = asked.kit / "reports" / "compatibility"
        command = [
            *(asked.python.absolute(), "-m", "pytest", "tests/compatibility", "-p", "token_for_kit", "-q"),
            *(f"--sut-host={hub.url}{rpc_path(agent.handle)}{asked.below}", "--transport=jsonrpc,http_json"),
            *(f"--compatibility-report={report.absolute()}", "--webhook-host=127.0.0.1", *asked.options),
        ]
        env = os.environ | {"HUB_URL": hub.url, "HUB_TOKEN": hub.mint("kit", "session")}
        env["PYTHONPATH"] = str(ROOT / "lab" / "conformance")
        kit = await asyncio.create_subprocess_exec(*map(str, command), cwd=asked.kit, env=env)
        return await kit.wait()


if __name__ == "__main__":
    sys.exit(main())
