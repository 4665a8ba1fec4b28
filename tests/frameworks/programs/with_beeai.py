"""A user of BeeAI asks by an `A2AAgent`. Called as `with_adk` is.

OPTIONS: `streaming`, if the user says whether to stream; the card decides otherwise. `address` as there.
"""

import logging
from typing import Any

from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.adapters.a2a.agents.agent import A2AAgentParameters, HttpxAsyncClientParameters
from beeai_framework.agents import AgentError
from beeai_framework.backend import AssistantMessage
from beeai_framework.memory import UnconstrainedMemory
from output import say, serve


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        logging.disable(logging.WARNING)  # the framework logs to standard output
        self.options = options
        client = HttpxAsyncClientParameters(headers={"Authorization": f"Bearer {token}"})
        parameters = A2AAgentParameters(httpx_async_client=client)
        self.agent = A2AAgent(url=options.get("address", url), memory=UnconstrainedMemory(), parameters=parameters)
        self.settings = {"streaming": options["streaming"]} if "streaming" in options else {}

    async def ask(self) -> None:
        for text in self.options["texts"]:
            result = await self._run(text)
            if result is not None:
                say("answer", shown(result.output))

    async def ask_by_memory(self) -> None:
        """The user reads all that the agent added to its memory."""
        for text in self.options["texts"]:
            known = len(self.agent.memory.messages)
            if await self._run(text) is not None:
                added = self.agent.memory.messages[known:]
                say("answer", shown([message for message in added if isinstance(message, AssistantMessage)]))

    async def _run(self, text: str) -> Any:
        try:
            return await self.agent.run(text, **self.settings)
        except AgentError as failure:
            say("answer", {"text": "", "error": failure.explain()})
            return None


def shown(messages: list[Any]) -> dict[str, Any]:
    contents = [content for message in messages for content in message.content]
    files = [str(content.file) for content in contents if content.type == "file"]
    return {"text": "\n".join(message.text for message in messages), "files": files}


if __name__ == "__main__":
    serve(Scenarios)
