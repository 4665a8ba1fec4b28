"""What owners, agents and askers write is text on the desk too: nothing of it runs, loads or leads anywhere."""

import pytest

from lab.agents import Echo, online
from lab.callers import bearer, send, web
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.vectors import OUTSIDE, VECTORS, in_turn
from tests.browser.visitor import Visitor

pytestmark = [*IN_BROWSER, pytest.mark.timeout(300)]
ASKERS = 4
PAGES_OF_QUESTIONS = -(-len(VECTORS) // 25)


@pytest.fixture
def asked(visitor: Visitor) -> list[str]:
    """What the browser asked other hosts for, from now on."""
    found: list[str] = []
    visitor.page.on("request", lambda request: found.append(request.url) if OUTSIDE in request.url else None)
    return found


def kept(vector: str) -> str:
    """A vector without what the REST API refuses in a text."""
    return vector.replace("\x00", "")


@in_turn
async def test_nothing_an_owner_writes_runs(
    visitor: Visitor, site: HubProcess, asked: list[str], vectors: list[str]
) -> None:
    await visitor.sign_in("owner")
    async with online(site, Echo) as echo, web(site.url, headers=bearer(site.mint("owner", "session"))) as owner:
        address = f"/desk/agents/{echo.agent['id']}"
        for vector in vectors:
            text = kept(vector)
            fields = {"name": text[:120], "tagline": text[:160], "description": text, "claudeMd": text}
            answer = await owner.patch(
                f"/api/v1/agents/{echo.agent['id']}", json=fields | {"suggestedPrompts": [text]}
            )
            assert answer.status_code == 200, answer.text
            for path in ("/desk", address):
                await visitor.page.goto(site.url + path, wait_until="domcontentloaded")
                await visitor.check_calm()
            await visitor.page.get_by_role("button", name="Preview").click()
            await visitor.page.wait_for_selector("#preview")
            await visitor.check_calm()
    assert asked == []


async def test_nothing_an_asker_writes_runs(visitor: Visitor, site: HubProcess, asked: list[str]) -> None:
    tokens = site.mint_sessions([f"vector-{number}" for number in range(ASKERS)])
    await visitor.sign_in("owner")
    async with online(site, Echo, agent={"concurrencyCap": 20}) as echo:
        for number, vector in enumerate(VECTORS):
            await send(site.url, echo.handle, kept(vector), tokens[number % ASKERS])
        for number in range(1, PAGES_OF_QUESTIONS + 1):
            await visitor.open(f"/desk/agents/{echo.agent['id']}/audit?days=30&page={number}")
            shown = await visitor.page.locator(".asks > li").count()
            assert shown == (25 if number < PAGES_OF_QUESTIONS else (len(VECTORS) - 1) % 25 + 1)
            await visitor.check_calm()
    assert asked == []


@in_turn
async def test_nothing_an_agent_says_of_itself_runs(
    visitor: Visitor, site: HubProcess, asked: list[str], vectors: list[str]
) -> None:
    await visitor.sign_in("owner")
    for vector in vectors:
        async with Echo(site.url, site.mint("owner", "channel"), host=kept(vector), cwd=kept(vector)):
            await visitor.page.goto(f"{site.url}/desk", wait_until="domcontentloaded")
            await visitor.check_calm()
            await visitor.page.goto(f"{site.url}/desk/publish", wait_until="domcontentloaded")
            await visitor.check_calm()
    assert asked == []


@in_turn
async def test_nothing_in_an_address_or_a_form_runs(
    visitor: Visitor, site: HubProcess, asked: list[str], vectors: list[str]
) -> None:
    visitor.expected = ["400"]
    page = visitor.page
    await visitor.sign_in("owner")
    async with online(site, Echo) as echo:
        await send(site.url, echo.handle, "a question", site.mint("asker", "session"))
        for vector in vectors:
            names = "['agents', 'asker', 'outcome', 'days', 'tz', 'name', 'session', 'page']"
            query = await page.evaluate(
                f"(v) => String(new URLSearchParams({names}.map((name) => [name, v])))", vector
            )
            for path in ("/desk", f"/desk/agents/{echo.agent['id']}/audit", "/desk/connect", "/desk/publish"):
                await page.goto(f"{site.url}{path}?{query}", wait_until="domcontentloaded")
                await visitor.check_calm()
            await page.goto(f"{site.url}/desk/agents/{echo.agent['id']}/audit", wait_until="domcontentloaded")
            await page.get_by_label("Asker", exact=True).fill(vector)
            await page.get_by_role("button", name="Show").click()
            await visitor.check_calm()
    assert asked == []
