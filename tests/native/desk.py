"""What is typed into the desk's forms, and how its pages are read."""

import asyncio
import csv
import io
from typing import Any

FIELDS: dict[str, Any] = {
    "name": "Helper",
    "tagline": "knows things",
    "description": "# Hello",
    "status": "published",
    "access": "public",
    "isolated": "on",
    "daily_budget": "10",
    "caller_budget": "",
    "caller_budgets": "",
    "concurrency_cap": "2",
    "wait_s": "900",
    "agent_style": "task-generating",
    "queue_max": "3",
    "queue_wait_s": "30",
    "suggested_prompts": "What is new?\r\nAnd why?",
    "allowed_logins": "",
    "claude_md": "",
    "personalization_prompt": "",
}
HOSTILE = "<script>pwned(1)</script>\"'><img src=x onerror=pwned(2)>"


def text(client: Any, path: str, status: int = 200, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == status, answer.content.decode()[:500]
    return str(answer.content.decode())


def sheet(client: Any, path: str) -> list[list[str]]:
    """The lines of a spreadsheet, and the name that it is saved by as the first."""
    answer = client.get(path)
    assert answer.status_code == 200
    return [[answer["Content-Disposition"]], *csv.reader(io.StringIO(asyncio.run(read(answer.streaming_content))))]


async def read(stream: Any) -> str:
    """The text of an answer that is streamed."""
    return b"".join([piece async for piece in stream]).decode()
