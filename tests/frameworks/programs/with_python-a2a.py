"""A user of python-a2a asks by its `A2AClient`. Called as `with_adk` is."""

import os
from typing import Any

from output import say, serve
from python_a2a import A2AClient, OpenAIA2AClient


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.options = options
        self.url, self.token = url, token
        self.client = A2AClient(url, headers={"Authorization": f"Bearer {token}"})

    async def ask(self) -> None:
        for text in self.options["texts"]:
            say("answer", {"text": self.client.ask(text)})

    async def ask_by_openai(self) -> None:
        """The user asks by the hub's address for clients of OpenAI's API."""
        hub, _, handle = self.url.rstrip("/").partition("/api/a2a/v1/agents/")
        os.environ["OPENAI_BASE_URL"] = f"{hub}/v1"
        client = OpenAIA2AClient(api_key=self.token, model=f"agent/{handle}")
        for text in self.options["texts"]:
            say("answer", {"text": client.ask(text)})


if __name__ == "__main__":
    serve(Scenarios)
