"""A user of Google's ADK asks a remote agent: URL, TOKEN, SCENARIO, OPTIONS.

Prints a JSON line for each question, as `output.say` describes. OPTIONS: `texts`, the questions of one session;
`streaming`, whether the user asked ADK's A2A client to stream; `address`, what is given in place of URL.
"""

from typing import Any

import httpx
from a2a.client import ClientConfig, ClientFactory
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.genai import types
from output import say, serve

USER = "user"


class Caller(BaseLlm):
    """A model that asks its tool what the user asked, and says what the tool returned."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        part = llm_request.contents[-1].parts[-1]
        if part.function_response:
            said = types.Part(text=str(part.function_response.response["result"]))
        else:
            said = types.Part(function_call=types.FunctionCall(name="remote", args={"request": part.text}))
        yield LlmResponse(content=types.Content(role="model", parts=[said]))


class Sender(BaseLlm):
    """A model that hands each question to its sub-agent."""

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        call = types.FunctionCall(name="transfer_to_agent", args={"agent_name": "remote"})
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        self.options = options
        client = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30)
        settings: dict[str, Any] = {"httpx_client": client}
        if options.get("streaming"):
            settings = {"a2a_client_factory": ClientFactory(ClientConfig(httpx_client=client, streaming=True))}
        self.remote = RemoteA2aAgent(
            "remote", options.get("address", f"{url}.well-known/agent-card.json"), **settings
        )

    async def ask(self) -> None:
        """The remote agent is the user's agent."""
        await self._ask(self.remote)

    async def ask_as_tool(self) -> None:
        """The remote agent is a tool of the user's agent."""
        await self._ask(LlmAgent(name="caller", model=Caller(model="caller"), tools=[AgentTool(self.remote)]))

    async def ask_as_sub_agent(self) -> None:
        """The remote agent is a sub-agent of the user's agent."""
        await self._ask(LlmAgent(name="caller", model=Sender(model="sender"), sub_agents=[self.remote]))

    async def _ask(self, agent: Any) -> None:
        runner = InMemoryRunner(agent)
        session = await runner.session_service.create_session(app_name=runner.app_name, user_id=USER)
        asked: types.FunctionCall | None = None
        for text in self.options["texts"]:
            part = types.Part(text=text)
            if asked is not None:  # ADK makes a call of what an agent asks: it is answered as calls are
                answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"result": text})
                part = types.Part(function_response=answer)
            message = types.Content(role="user", parts=[part])
            events = [e async for e in runner.run_async(user_id=USER, session_id=session.id, new_message=message)]
            asked = next(
                (call for event in events for call in event.get_function_calls() if is_asked(event)), None
            )
            kept = await runner.session_service.get_session(
                app_name=runner.app_name, user_id=USER, session_id=session.id
            )
            final = [event for event in events if event.is_final_response() and event.content]
            say(
                "answer",
                {
                    "text": "".join(map(text_of, final)),
                    "kept": "".join(text_of(event) for event in kept.events if event.author != USER),
                    "asks": None if asked is None else asked.args,
                    "files": [shown for event in final for shown in files_of(event)],
                    "error": "".join(event.error_message or "" for event in events),
                },
            )


def is_asked(event: Event) -> bool:
    return bool(event.long_running_tool_ids)


def text_of(event: Event) -> str:
    parts = event.content.parts if event.content and event.content.parts else []
    return "".join(part.text or "" for part in parts if not part.thought)


def files_of(event: Event) -> list[str]:
    parts = event.content.parts if event.content and event.content.parts else []
    files = [part.inline_data or part.file_data for part in parts]
    return [
        f"{file.mime_type} {getattr(file, 'data', b'') or getattr(file, 'file_uri', '')!r}"
        for file in files
        if file
    ]


if __name__ == "__main__":
    serve(Scenarios)
