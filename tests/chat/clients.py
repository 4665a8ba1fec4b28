"""The official Python client of OpenAI, as tests use it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai

from lab.agents import Kind, online
from lab.callers import ANSWER_WITHIN_S
from lab.hub_process import HubProcess


def client_of(url: str, token: str) -> openai.AsyncOpenAI:
    """The client as its users make it, but for retries: tests count what is asked."""
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0, timeout=ANSWER_WITHIN_S)


@asynccontextmanager
async def asking(
    hub: HubProcess, kind: Callable[..., Kind], **options: Any
) -> AsyncIterator[tuple[Kind, openai.AsyncOpenAI, str]]:
    """An agent that is online, alice's client at the last process, and the name of the agent as a model."""
    async with (
        online(hub, kind, **options) as agent,
        client_of(hub.urls[-1], hub.mint("alice", "session")) as client,
    ):
        yield agent, client, f"agent/{agent.handle}"


def user(content: Any) -> list[Any]:
    """One message."""
    return [{"role": "user", "content": content}]


async def read(stream: Any) -> tuple[str, list[Any]]:
    """The text of a stream, and its chunks."""
    chunks = [chunk async for chunk in stream]
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices), chunks
