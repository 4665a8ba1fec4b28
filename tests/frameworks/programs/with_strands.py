"""A user of Strands Agents asks by an `A2AAgent`. Called as `with_adk` is."""

from typing import Any

import httpx
from a2a.client import ClientConfig
from output import say, serve
from strands.agent.a2a_agent import A2AAgent


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.options = options
        client = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
        self.agent = A2AAgent(options.get("address", url), client_config=ClientConfig(httpx_client=client))

    async def ask(self) -> None:
        for text in self.options["texts"]:
            result = await self.agent.invoke_async(text)
            said = "".join(block.get("text", "") for block in result.message["content"])
            say("answer", {"text": said, "stop": result.stop_reason})

    async def ask_by_events(self) -> None:
        """Read what came, not the result that Strands makes of it."""
        for text in self.options["texts"]:
            events = [event["event"] async for event in self.agent.stream_async(text) if "event" in event]
            task, _ = events[-1]
            say("answer", {"text": "\n".join(str(part) for one in task.artifacts for part in one.parts)})


if __name__ == "__main__":
    serve(Scenarios)
