"""Values for the desk's forms, and readers of its pages."""

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


def file_of(client: Any, path: str) -> tuple[str, str]:
    """The name that a file is saved by, as the header has it, and its text."""
    answer = client.get(path)
    assert answer.status_code == 200

    async def read() -> str:
        return b"".join([piece async for piece in answer.streaming_content]).decode()

    return answer["Content-Disposition"], asyncio.run(read())


def sheet(client: Any, path: str) -> list[list[str]]:
    """The lines of a spreadsheet, and the name that it is saved by as the first."""
    name, text = file_of(client, path)
    return [[name], *csv.reader(io.StringIO(text))]
