"""The browser leg in a real browser, by keyboard, on a screen the size of a phone."""

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.browser.chrome import PROGRAM, chromium
from tests.browser.visitor import PHONE, Visitor, visiting
from tests.github import GitHub
from tests.signin.clients import CommandLine
from tests.signin.test_apps import Device

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")]
FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture
async def visitor(signin_hub: HubProcess) -> AsyncIterator[Visitor]:
    async with chromium() as browser, visiting(browser, signin_hub.url) as visitor:
        await visitor.page.set_viewport_size(PHONE)
        yield visitor


async def sign_in(visitor: Visitor, github: GitHub, login: str, path: str) -> None:
    github.person, github.shows_button = login, True
    page = visitor.page
    await page.goto(visitor.url + path)
    await page.locator("main a.button", has_text="GitHub").press("Enter")
    await page.locator("#go").click()


async def arrived(page: Page, path: str) -> None:
    """The page of a path is there, whole."""
    await page.wait_for_url(re.compile(re.escape(path) + "$"), wait_until="load")


async def test_a_person_signs_in_makes_a_token_and_signs_out(visitor: Visitor, github: GitHub) -> None:
    page = visitor.page
    await sign_in(visitor, github, "nora", "/account")
    await arrived(page, "/account")
    await expect(page.locator("h1")).to_have_text("@nora")
    assert await page.evaluate("document.cookie.includes('cw_session')") is False
    assert await page.evaluate(FITS)
    await page.locator("#name").fill("laptop")
    await page.locator("#name").press("Enter")
    token = await page.locator("#token").input_value()
    assert re.fullmatch("ck_live_[0-9a-f]{32}", token)
    await expect(page.locator("[data-copy]").first).to_be_visible()
    await expect(page.locator("#snippet")).to_contain_text(token)
    assert await page.evaluate(FITS)
    for path in ("/admin/", "/admin/agents/agent/", "/admin/accounts/credential/"):  # under the same policy
        await page.goto(visitor.url + path)
        await arrived(page, path)
    await page.goto(f"{visitor.url}/account")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await arrived(page, "/")
    await expect(page.locator("body")).to_contain_text("signed out")
    assert visitor.complaints == []


async def test_a_command_line_opens_the_browser_and_gets_its_code(
    visitor: Visitor, signin_hub: HubProcess, github: GitHub
) -> None:
    github.person = "olga"
    cli = CommandLine(signin_hub)
    try:
        await visitor.page.goto(signin_hub.url + cli.start_url)
        await landed(cli)
        assert cli.landed[0]["state"] == cli.state
        answer = cli.exchange(cli.landed[0]["code"])
        assert answer.json()["user"]["githubLogin"] == "olga"
    finally:
        cli.close()


async def test_an_app_and_a_device_are_allowed_by_keyboard(
    visitor: Visitor, signin_hub: HubProcess, github: GitHub
) -> None:
    page, allow = visitor.page, visitor.page.locator("button[value=allow]")
    device = Device(signin_hub)
    await sign_in(visitor, github, "pia", "/device")
    await expect(page.locator("#user_code")).to_be_focused()
    await page.keyboard.type(device.codes["user_code"])
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("Lamp")
    assert await page.evaluate(FITS)
    await allow.press("Enter")
    await arrived(page, "/account")
    assert device.poll().status_code == 200

    app = CommandLine(signin_hub)
    try:
        query = app.start_url.partition("?")[2]
        await page.goto(f"{signin_hub.url}/api/v1/auth/spa/start?{query}&app_name=Orchard")
        await expect(page.locator("h1")).to_contain_text("Orchard")
        await allow.press("Enter")  # the policy must let this form lead to the app
        await landed(app)
        answer = app.exchange(app.landed[0]["code"], path="/api/v1/auth/spa/exchange")
        assert answer.json()["tokenName"] == "Orchard"
    finally:
        app.close()
    assert visitor.complaints == []


async def landed(app: CommandLine) -> None:
    """The code came to the listener of a command line."""

    async def look() -> list[dict[str, str]]:
        return app.landed

    await eventually(look, "the code came to the listener", within_s=20)
