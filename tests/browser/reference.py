"""How a visitor asks on the developer reference, and reads what it shows."""

from lab.callers import Json
from tests.browser.visitor import Visitor

PIECES = ["A lifetime ", "is how long ", "it's good."]
CODES = {
    "token": -32010,
    "agent": -32012,
    "type": -32005,
    "version": -32009,
    "json": -32700,
    "id": -32600,
    "method": -32601,
    "params": -32602,
    "task": -32001,
}
TASKS: Json = {"agentStyle": "task-generating"}
TITLES = {"v1-0": "A2A 1.0", "v0-3": "A2A 0.3"}


async def ask(visitor: Visitor, text: str, *, streaming: bool = True) -> None:
    """Fill in and send."""
    await visitor.page.locator(f"input[value={'stream' if streaming else 'send'}]").check()
    await visitor.page.get_by_label("Your question").fill(text)
    await visitor.page.get_by_role("button", name="Send").click()


async def text_of(visitor: Visitor, element: str) -> str:
    found: str = await visitor.page.evaluate("(id) => document.getElementById(id).textContent", element)
    return found


async def speak(visitor: Visitor, key: str, handle: str) -> None:
    """Open the page at an agent, and choose a dialect."""
    await visitor.open(f"/demos/a2a/?agent={handle}")
    await visitor.page.get_by_label(TITLES[key], exact=True).check()
