"""A user of Agno asks by a `RemoteAgent` that speaks A2A. Called as `with_adk` is.

OPTIONS: `protocol`, the `a2a_protocol` that the user names; `streaming`, whether the user streams.
"""

from typing import Any

from agno.agent.remote import RemoteAgent
from output import say, serve


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.options = options
        self.token = token
        protocol = {"a2a_protocol": options["protocol"]} if "protocol" in options else {}
        self.agent = RemoteAgent(url, "remote", protocol="a2a", **protocol)

    async def ask(self) -> None:
        session: str | None = None
        for text in self.options["texts"]:
            asked = {"session_id": session, "auth_token": self.token}
            if self.options.get("streaming"):
                *_, end = [event async for event in self.agent.arun(text, stream=True, **asked)]
            else:
                end = await self.agent.arun(text, **asked)
            session = end.session_id
            files = [str(file) for file in getattr(end, "files", None) or ()]
            say("answer", {"text": end.content or "", "files": files})


if __name__ == "__main__":
    serve(Scenarios)
