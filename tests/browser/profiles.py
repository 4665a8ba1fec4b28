"""A browser profile that several tests use one after another, emptied between them.

A new profile for each test would start a new process, which reads and compiles the same scripts again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, BrowserContext, CDPSession

from tests.browser.visitor import Visitor, new_profile, new_visitor


class Profile:
    """A context of a browser. Only the cache of files and an empty tab stay from visitor to visitor.

    Closing the tabs ends their session storage, routes, scripts, listeners, colours and sizes. The context's own
    cookies, permissions, routes and storage of origins are cleared.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._context: BrowserContext | None = None
        self._keeper: CDPSession | None = None  # of the tab that keeps the process

    @asynccontextmanager
    async def visiting(self, url: str) -> AsyncIterator[Visitor]:
        """A visitor with an empty profile; one at a time."""
        if self._context is None:
            self._context = await new_profile(self._browser)
            self._keeper = await self._context.new_cdp_session(await self._context.new_page())
        visitor = await new_visitor(self._context, url)
        try:
            yield visitor
        finally:
            await (self.close() if visitor.is_profile_spent else self._empty())

    async def _empty(self) -> None:
        assert self._context is not None
        assert self._keeper is not None
        for page in self._context.pages[1:]:
            await page.close()
        await self._context.unroute_all()
        await self._context.clear_permissions()
        await self._keeper.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": "all"})

    async def close(self) -> None:
        """End the context, if there is one."""
        if self._context is not None:
            await self._context.close()
        self._context = self._keeper = None
