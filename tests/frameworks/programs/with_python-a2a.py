"""What a user of python-a2a ends up with who asks by its `A2AClient`. Called as `with_adk` is."""

from typing import Any

from output import say, serve
from python_a2a import A2AClient


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.options = options
        self.client = A2AClient(url, headers={"Authorization": f"Bearer {token}"})

    async def ask(self) -> None:
        for text in self.options["texts"]:
            say("answer", {"text": self.client.ask(text)})


if __name__ == "__main__":
    serve(Scenarios)
