"""Steps of a visitor who asks on an agent's page, and reads the conversation there."""

from playwright.async_api import Locator

from tests.browser.visitor import Visitor


async def ask(visitor: Visitor, text: str) -> None:
    """Write a question and press Enter, as the next turn."""
    await visitor.page.get_by_label("Your question").fill(text)
    await visitor.page.get_by_label("Your question").press("Enter")


def last(visitor: Visitor) -> Locator:
    """The last turn."""
    return visitor.page.locator(".turn").last


async def said(visitor: Visitor, words: str) -> None:
    """Wait until the status line of the last turn, or the advice, says so."""
    status = last(visitor).get_by_role("status").or_(visitor.page.locator("#advice"))
    await status.filter(has_text=words).wait_for()


async def turned(visitor: Visitor, number: int, words: str) -> Locator:
    """Wait until the turn of that number, from 1 on, has this status; the turn."""
    turn = visitor.page.locator(".turn").nth(number - 1)
    await turn.get_by_role("status").filter(has_text=words).wait_for()
    return turn


async def text_in(visitor: Visitor, part: str) -> str:
    """The text of a part of the last turn (`data-part`), without those of buttons."""
    read = """(part) => {
      const copy = document.querySelector(`.turn:last-child [data-part="${part}"]`).cloneNode(true);
      copy.querySelectorAll("button").forEach((button) => button.remove());
      return copy.textContent;
    }"""
    text: str = await visitor.page.evaluate(read, part)
    return text


async def reply(visitor: Visitor) -> str:
    """The reply in the last turn."""
    return await text_in(visitor, "reply")
