"""Every page: its address, and whether one must be signed in. Screenshots and the checks of all pages read it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from playwright.async_api import Page


async def _nothing(page: Page) -> None:
    """The page as it opens."""


async def _ask(page: Page) -> None:
    await page.get_by_role("button", name="Fetch the card").click()
    await page.get_by_label("Your question").fill("What is a lifetime in Rust?")
    await page.get_by_label("curl").check()
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Completed.").wait_for()


async def _err(page: Page) -> None:
    await page.get_by_label("Make a mistake").select_option("params")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_text("Not taken.").wait_for()


async def _ask_agent(page: Page) -> None:
    await page.get_by_label("Your question").fill("What is a lifetime in Rust?")
    await page.get_by_label("Your question").press("Control+Enter")
    await page.get_by_text("Answered in").wait_for()


async def _open_notes(page: Page) -> None:
    for note in await page.locator("details").all():
        await note.locator("summary").click()


async def _mint(page: Page) -> None:
    await page.get_by_label("New channel token").fill("laptop")
    await page.get_by_role("button", name="Make a token").click()
    await page.get_by_text("Your new token").wait_for()


async def _connect(page: Page) -> None:
    await page.get_by_label("Its name").fill("laptop")
    await page.get_by_role("button", name="Get a token").click()
    await page.get_by_text("Nothing has connected").wait_for()


async def _audit(page: Page) -> None:
    await page.get_by_role("link", name="Who asked").first.click()
    await page.get_by_text("Days are those of").wait_for()


async def _edit(page: Page) -> None:
    await page.get_by_role("link", name="Edit").first.click()
    await page.get_by_role("button", name="Save").wait_for()


@dataclass(frozen=True)
class Listed:
    """One page in one state. `{agent}` in the path becomes a handle; `act` brings the state about."""

    name: str
    path: str
    signed_in: bool = False
    login: str = "alice"
    act: Callable[[Page], Awaitable[None]] = _nothing


PAGES = [
    Listed("home", "/"),
    Listed("home-signed-in", "/", signed_in=True),
    Listed("directory", "/agents"),
    Listed("directory-no-match", "/agents?q=nobody"),
    Listed("agent", "/agents/{agent}", act=_open_notes),
    Listed("agent-asked", "/agents/{agent}", signed_in=True, act=_ask_agent),
    Listed("agent-absent", "/agents/nobody/knows"),
    Listed("signin", "/signin"),
    Listed("account", "/account", signed_in=True),
    Listed("account-new-token", "/account", signed_in=True, act=_mint),
    Listed("device", "/device", signed_in=True),
    Listed("api", "/docs"),
    Listed("reference", "/demos/a2a/?agent={agent}"),
    Listed("reference-asked", "/demos/a2a/?agent={agent}", signed_in=True, act=_ask),
    Listed("reference-mistake", "/demos/a2a/?agent={agent}", signed_in=True, act=_err),
    Listed("desk-empty", "/desk", signed_in=True),
    Listed("desk", "/desk", signed_in=True, login="owner"),
    Listed("desk-connect", "/desk/connect", signed_in=True),
    Listed("desk-connecting", "/desk/connect", signed_in=True, act=_connect),
    Listed("desk-publish", "/desk/publish", signed_in=True),
    Listed("desk-agent", "/desk", signed_in=True, login="owner", act=_edit),
    Listed("desk-audit", "/desk", signed_in=True, login="owner", act=_audit),
    Listed("webhooks", "/webhooks", signed_in=True),
    Listed("not-found", "/nothing-here"),
]
