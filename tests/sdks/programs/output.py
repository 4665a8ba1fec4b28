"""How a program of a client says what it saw, on standard output. Runs in the client's environment, on its own."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

STATES = ["completed", "failed", "canceled", "rejected"]
ENDED = {*STATES, *(f"TASK_STATE_{state.upper()}" for state in STATES)}


def say(step: str, value: object) -> None:
    """One line, `{"step": what was done, "value": what came, as JSON}`."""
    print(json.dumps({"step": step, "value": value}), flush=True)


def say_raised(failure: Exception) -> None:
    """The step `raised`: the exception's class and words, and the code if the SDK kept one."""
    error = getattr(failure, "error", None)
    code = getattr(error, "code", None) or getattr(failure, "status_code", None)
    say("raised", {"type": type(failure).__name__, "message": str(failure), "code": code})


async def attempt(work: Awaitable[object]) -> None:
    """Await what should be refused, and say what the SDK raises."""
    try:
        await work
    except Exception as failure:  # noqa: BLE001 - whatever it raises is what we want to see
        say_raised(failure)
    else:
        say("not raised", None)


def run(scenarios: Callable[[str, str, dict[str, Any]], Any], arguments: list[str]) -> None:
    """Run one scenario: URL, TOKEN, its name, OPTIONS. What it raises is its last line."""
    url, token, name, options = arguments
    work = getattr(scenarios(url, token, json.loads(options)), name)
    try:
        asyncio.run(work())
    except Exception as failure:  # noqa: BLE001 - the test reads it
        say_raised(failure)
