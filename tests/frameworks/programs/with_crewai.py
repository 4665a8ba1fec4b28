"""A user of CrewAI asks by an agent with the setting `a2a`. Called as `with_adk` is.

OPTIONS: `settings`, of `A2AClientConfig`; `polling`, if the user does not stream; `address` as there.
"""

import asyncio
import json
import os
import queue
from typing import Any

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import Agent, BaseLLM, Crew, Task
from crewai.a2a import A2AClientConfig
from crewai.a2a.auth import BearerTokenAuth
from crewai.a2a.updates import PollingConfig
from crewai.events import crewai_event_bus
from crewai.events.types.a2a_events import A2ADelegationCompletedEvent
from output import say, serve


class Caller(BaseLLM):
    """A model that asks the remote agent what the user asked, and says what its prompt shows of the answer.

    A question back gets the user's next question as its answer.
    """

    endpoint: str
    texts: list[str]
    heard: int = 0

    def call(self, messages: Any, *args: Any, **more: Any) -> str:
        prompt = messages if isinstance(messages, str) else str(messages[-1]["content"])
        conversation = said_before(prompt)
        if not conversation:
            return self.ask()
        answer = "\n".join(since_the_question(conversation)) or "nothing"
        if self.texts and "RESPONSE_RECEIVED" not in prompt:
            say("answer", {"text": answer})
            return self.ask()
        return json.dumps({"a2a_ids": [], "message": answer, "is_a2a": False})

    def ask(self) -> str:
        return json.dumps({"a2a_ids": [self.endpoint], "message": self.texts.pop(0), "is_a2a": True})


class Scenarios:
    def __init__(self, url: str, token: str, options: dict[str, Any]) -> None:
        url = options.get("address", url)
        self.model = Caller(model="caller", endpoint=url, texts=options["texts"])
        settings = options.get("settings", {})
        if options.get("polling"):
            settings["updates"] = PollingConfig(interval=0.1)
        remote = A2AClientConfig(endpoint=url, auth=BearerTokenAuth(token=token), **settings)
        self.agent = Agent(role="caller", goal="ask", backstory="none", llm=self.model, a2a=remote)

    async def ask(self) -> None:
        while self.model.texts:
            say("answer", {"text": await self._work()})

    async def ask_by_events(self) -> None:
        """The user reads the events that CrewAI emits."""
        ended: queue.Queue[A2ADelegationCompletedEvent] = queue.Queue()
        crewai_event_bus.on(A2ADelegationCompletedEvent)(lambda source, event: ended.put(event))
        while self.model.texts:
            await self._work()
            event = ended.get(timeout=10)
            say("answer", {"text": event.result or "", "error": event.error or ""})

    async def _work(self) -> str:
        task = Task(description="ask", expected_output="the answer", agent=self.agent)
        result = await asyncio.to_thread(Crew(agents=[self.agent], tasks=[task]).kickoff)
        return str(result.raw)


def said_before(prompt: str) -> list[dict[str, Any]]:
    """The messages of A2A that the prompt shows."""
    _, _, shown = prompt.partition("<PREVIOUS_A2A_CONVERSATION>")
    shown = shown.partition("</PREVIOUS_A2A_CONVERSATION>")[0].strip()
    messages = []
    while shown:
        message, end = json.JSONDecoder().raw_decode(shown)
        messages.append(message)
        shown = shown[end:].strip()
    return messages


def since_the_question(messages: list[dict[str, Any]]) -> list[str]:
    """The texts of the remote agent after the last question."""
    asked = max(number for number, message in enumerate(messages) if message["role"] == "user")
    return ["".join(part.get("text", "") for part in message["parts"]) for message in messages[asked + 1 :]]


if __name__ == "__main__":
    serve(Scenarios)
