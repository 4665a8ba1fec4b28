"""Steps of a visitor who asks on the developer reference, and reads what it shows."""

from lab.callers import Json
from tests.browser.visitor import Visitor

TASKS: Json = {"agentStyle": "task-generating"}
TITLES = {"own": "The hub's own", "v1-0": "A2A 1.0", "v0-3": "A2A 0.3"}


async def ask(visitor: Visitor, text: str, *, streaming: bool = True) -> None:
    """Fill in and send; what the answer before left is gone."""
    await visitor.page.evaluate("document.getElementById('ask-status').textContent = ''")
    await visitor.page.locator(f"input[value={'stream' if streaming else 'send'}]").check()
    await visitor.page.get_by_label("Your question").fill(text)
    await visitor.page.get_by_role("button", name="Send").click()


async def told(visitor: Visitor, words: str) -> None:
    """Wait until the page says so of the exchange."""
    await visitor.page.locator("#ask-status").filter(has_text=words).wait_for()


async def text_of(visitor: Visitor, element: str) -> str:
    found: str = await visitor.page.evaluate("(id) => document.getElementById(id).textContent", element)
    return found


async def speak(visitor: Visitor, key: str, handle: str) -> None:
    """Open the page at an agent, and choose a dialect."""
    await visitor.open(f"/demos/a2a/?agent={handle}")
    await visitor.page.get_by_label(TITLES[key], exact=key != "own").check()
