"""A visitor who looks at one page after another for what hostile rows did."""

from dataclasses import dataclass, field

from lab.hub_process import HubProcess
from tests.browser.hostile import INTRUDERS
from tests.browser.sessions import is_live
from tests.browser.visitor import Visitor

LOOK = f"""() => {{
  const found = document.documentElement.innerHTML.matchAll(/pwned\\((\\d+)\\)/g);
  const shown = [...new Set([...found].map(([, number]) => Number(number)))];
  return {{...look(), intruders: ({INTRUDERS})(), shown}};
}}"""


REFUSED = ("status of 400", "status of 403", "status of 404")


@dataclass
class Looking:
    """A visitor who opens one page after another; what went wrong, and the numbers of shown vectors."""

    visitor: Visitor
    faults: list[str] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    pages: int = 0

    async def open(self, path: str, *, shows_live: bool = False) -> None:
        """Open a page, and look. `shows_live`: it gets what it shows over its socket."""
        await self.visitor.page.goto(self.visitor.url + path, wait_until="domcontentloaded")
        if shows_live:
            await is_live(self.visitor)
        seen = await self.visitor.page.evaluate(LOOK)
        for kind in ("pwned", "blocked", "intruders"):
            self.faults += [f"{path}: {kind}: {one}" for one in seen[kind]]
        self.shown.update(seen["shown"])
        self.pages += 1

    def end(self) -> None:
        """Note what the browser complained of."""
        expected = [*REFUSED, *self.visitor.expected]
        self.faults += [one for one in self.visitor.complaints if not any(words in one for words in expected)]


@dataclass
class Rows:
    """A hub whose database was filled before its start."""

    hub: HubProcess
    owners: list[dict[str, str]]
    columns: list[str]
    tried: dict[str, int]
    keys: dict[str, list[str]]
