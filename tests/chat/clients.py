"""The official Python client of OpenAI, as tests use it."""

from typing import Any

import openai

from lab.callers import ANSWER_WITHIN_S


def client_of(url: str, token: str) -> openai.AsyncOpenAI:
    """The client as its users make it, but for retries: tests count what is asked."""
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=token, max_retries=0, timeout=ANSWER_WITHIN_S)


def user(content: Any) -> list[Any]:
    """One message."""
    return [{"role": "user", "content": content}]


async def read(stream: Any) -> tuple[str, list[Any]]:
    """The text of a stream, and its chunks."""
    chunks = [chunk async for chunk in stream]
    return "".join(one.choices[0].delta.content or "" for one in chunks if one.choices), chunks
