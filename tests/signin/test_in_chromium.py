"""The browser leg in a real browser, by keyboard, on a screen the size of a phone."""

import re
from contextlib import closing

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


async def test_people_sign_in_by_keyboard_on_a_phone(signin_hub: HubProcess, github: GitHub) -> None:
    """In one browser, which takes a second to start; each way in a context of its own."""
    async with chromium() as browser:
        for way in (check_a_token, check_a_command_line, check_an_app_and_a_device):
            github.reset()
            async with visiting(browser, signin_hub.url) as visitor:
                await visitor.page.set_viewport_size(PHONE)
                await way(visitor, signin_hub, github)
                assert visitor.complaints == []


async def sign_in(visitor: Visitor, github: GitHub, login: str, path: str) -> None:
    github.person, github.shows_button = login, True
    page = visitor.page
    await page.goto(visitor.url + path)
    await page.locator("main a.button", has_text="GitHub").press("Enter")
    await page.locator("#go").click()


async def arrived(page: Page, path: str) -> None:
    await page.wait_for_url(re.compile(re.escape(path) + "$"), wait_until="load")


async def check_a_token(visitor: Visitor, _: HubProcess, github: GitHub) -> None:
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
    await page.goto(f"{visitor.url}/account")
    await page.get_by_role("button", name="Sign out", exact=True).click()
    await arrived(page, "/")
    await expect(page.locator("body")).to_contain_text("signed out")


async def check_a_command_line(visitor: Visitor, hub: HubProcess, github: GitHub) -> None:
    github.person = "olga"
    with closing(CommandLine(hub)) as cli:
        await visitor.page.goto(hub.url + cli.start_url)
        await landed(cli)
        assert cli.landed[0]["state"] == cli.state
        answer = cli.exchange(cli.landed[0]["code"])
        assert answer.json()["user"]["githubLogin"] == "olga"


async def check_an_app_and_a_device(visitor: Visitor, hub: HubProcess, github: GitHub) -> None:
    page, allow = visitor.page, visitor.page.locator("button[value=allow]")
    device = Device(hub)
    await sign_in(visitor, github, "pia", "/device")
    await expect(page.locator("#user_code")).to_be_focused()
    await page.keyboard.type(device.codes["user_code"])
    await page.keyboard.press("Enter")
    await expect(page.locator("h1")).to_contain_text("Lamp")
    assert await page.evaluate(FITS)
    await allow.press("Enter")
    await arrived(page, "/account")
    assert device.poll().status_code == 200

    with closing(CommandLine(hub)) as app:
        query = app.start_url.partition("?")[2]
        await page.goto(f"{hub.url}/api/v1/auth/spa/start?{query}&app_name=Orchard")
        await expect(page.locator("h1")).to_contain_text("Orchard")
        await allow.press("Enter")  # the policy must let this form lead to the app
        await landed(app)
        answer = app.exchange(app.landed[0]["code"], path="/api/v1/auth/spa/exchange")
        assert answer.json()["tokenName"] == "Orchard"


async def landed(app: CommandLine) -> None:
    """The code came to the listener of a command line."""

    async def look() -> list[dict[str, str]]:
        return app.landed

    await eventually(look, "the code came to the listener", within_s=20)
