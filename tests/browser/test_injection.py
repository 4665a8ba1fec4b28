"""What agents, owners and visitors write is text: nothing of it runs, loads or leads anywhere."""

import httpx
import pytest

from lab.agents import Echo, online
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from tests.browser.chrome import IN_BROWSER
from tests.browser.vectors import ONE_OF_EACH_KIND, OUTSIDE, SHORT, VECTORS, in_turn, together
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER


@pytest.fixture
def asked(visitor: Visitor) -> list[str]:
    """What the browser asked other hosts for, from now on."""
    found: list[str] = []
    visitor.page.on("request", lambda request: found.append(request.url) if OUTSIDE in request.url else None)
    return found


async def test_there_are_sixty_of_them() -> None:
    assert len(set(VECTORS)) == len(VECTORS) >= 60
    assert set(ONE_OF_EACH_KIND) < set(VECTORS)
    texts = together(ONE_OF_EACH_KIND, SHORT)
    assert all(any(vector in text for text in texts) for vector in ONE_OF_EACH_KIND)
    assert max(map(len, texts)) <= SHORT


@in_turn
@pytest.mark.timeout(300)
async def test_nothing_an_owner_writes_runs(
    visitor: Visitor, site: HubProcess, asked: list[str], vectors: list[str]
) -> None:
    await visitor.sign_in("alice")
    async with online(site, Echo) as echo, web(site.url, headers=bearer(site.mint("owner", "session"))) as owner:
        for vector in vectors:
            await _write(owner, echo.agent["id"], vector)
            for path in ("/", f"/demos/a2a/?agent={echo.handle}"):
                await visitor.page.goto(site.url + path, wait_until="domcontentloaded")
                assert _kept(vector).split()[0][:20] in await visitor.page.inner_text("main"), "the text is shown"
                await visitor.check_calm()
    assert asked == []


def _kept(vector: str) -> str:
    return vector.replace("\x01", "")  # the browser's window shows control characters as nothing


async def _write(owner: httpx.AsyncClient, agent_id: int, vector: str) -> None:
    text = _kept(vector)
    fields = {"name": text, "tagline": text, "description": text, "suggestedPrompts": [text]}
    answer = await owner.patch(f"/api/v1/agents/{agent_id}", json=fields)
    assert answer.status_code == 200, answer.text


@in_turn
@pytest.mark.timeout(300)
async def test_nothing_an_agent_answers_runs(
    visitor: Visitor, site: HubProcess, asked: list[str], vectors: list[str]
) -> None:
    await visitor.sign_in("alice")
    async with online(site, Echo) as echo:
        await visitor.open(f"/demos/a2a/?agent={echo.handle}")
        page = visitor.page
        for number, vector in enumerate(vectors):
            await page.locator(f"input[name=how][value={'stream' if number % 2 else 'send'}]").check()
            await page.get_by_role(
                "radio", name=["HTTP", "curl", "Python", "TypeScript"][number % 4], exact=True
            ).check()
            await page.get_by_label("Your question").fill(vector)
            await page.get_by_role("button", name="Send").click()
            await page.get_by_text("Completed.").wait_for()
            said = await page.evaluate("document.getElementById('reply').textContent")
            assert said == f"echo: {await page.get_by_label('Your question').input_value()}"
            await visitor.check_calm()
    assert asked == []


@in_turn
@pytest.mark.timeout(300)
async def test_nothing_in_an_address_or_a_form_runs(
    visitor: Visitor, asked: list[str], vectors: list[str]
) -> None:
    visitor.expected = ["400"]  # a browser notes it in the console
    page = visitor.page
    for vector in vectors:
        await page.goto(_address(visitor, "/demos/a2a/", agent=vector), wait_until="domcontentloaded")
        await visitor.check_calm()
    for vector in vectors:
        await page.goto(_address(visitor, "/signin", next=vector), wait_until="domcontentloaded")
        await page.get_by_label("Login").fill(vector)
        await page.get_by_label("Login").press("Enter")
        await page.get_by_role("alert").wait_for()
        await visitor.check_calm()
    assert asked == []


def _address(visitor: Visitor, path: str, **query: str) -> str:
    return str(httpx.URL(visitor.url + path, params=query))
