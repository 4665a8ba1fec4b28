"""The browser leg in a real browser, by keyboard, on a screen the size of a phone."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.github import GitHub
from tests.signin.chromium import PROGRAM, Page, chromium
from tests.signin.clients import CommandLine
from tests.signin.test_apps import Device

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")]
FITS = "document.documentElement.scrollWidth <= window.innerWidth"


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with chromium(tmp_path) as tab:
        yield tab


async def sign_in(page: Page, hub: HubProcess, github: GitHub, login: str, path: str) -> None:
    github.person, github.shows_button = login, True
    await page.go(hub.url + path)
    await page.until("document.querySelector('main a.button')?.textContent.includes('GitHub')")
    await page.evaluate("document.querySelector('main a.button').focus()")
    await page.press("Enter")
    await page.until("!!document.querySelector('#go')")
    await page.evaluate("document.querySelector('#go').click()")


async def test_a_person_signs_in_makes_a_token_and_signs_out(
    page: Page, signin_hub: HubProcess, github: GitHub
) -> None:
    await sign_in(page, signin_hub, github, "nora", "/account")
    await page.until("location.pathname === '/account' && document.querySelector('h1')?.textContent === '@nora'")
    assert await page.evaluate("document.cookie.includes('cw_session')") is False
    assert await page.evaluate(FITS)
    await page.evaluate("document.querySelector('#name').focus()")
    await page.press("laptop", "Enter")
    token = await page.until("document.querySelector('#token')?.value")
    assert re.fullmatch("ck_live_[0-9a-f]{32}", token)
    assert await page.evaluate("document.querySelector('[data-copy]').hidden") is False
    assert token in await page.evaluate("document.querySelector('#snippet').textContent")
    assert await page.evaluate(FITS)
    for path in ("/admin/", "/admin/agents/agent/", "/admin/accounts/credential/"):  # under the same policy
        await page.go(signin_hub.url + path)
        await page.until(f"location.pathname === '{path}' && document.readyState === 'complete'")
    await page.go(f"{signin_hub.url}/account")
    await page.until("!!document.querySelector('form[action=\"/signout\"] button')")
    await page.evaluate("document.querySelector('form[action=\"/signout\"] button').click()")
    await page.until("location.pathname === '/' && document.body.textContent.includes('signed out')")
    assert page.complaints == []


async def test_a_command_line_opens_the_browser_and_gets_its_code(
    page: Page, signin_hub: HubProcess, github: GitHub
) -> None:
    github.person = "olga"
    cli = CommandLine(signin_hub)
    try:
        await page.go(signin_hub.url + cli.start_url)

        async def landed() -> list[dict[str, str]]:
            return cli.landed

        await eventually(landed, "the code came to the listener", within_s=20)
        assert cli.landed[0]["state"] == cli.state
        answer = cli.exchange(cli.landed[0]["code"])
        assert answer.json()["user"]["githubLogin"] == "olga"
    finally:
        cli.close()


async def test_an_app_and_a_device_are_allowed_by_keyboard(
    page: Page, signin_hub: HubProcess, github: GitHub
) -> None:
    device = Device(signin_hub)
    await sign_in(page, signin_hub, github, "pia", "/device")
    await page.until("document.activeElement?.id === 'user_code'")
    await page.press(device.codes["user_code"], "Enter")
    await page.until("document.querySelector('h1')?.textContent.includes('Lamp')")
    assert await page.evaluate(FITS)
    await page.evaluate("document.querySelector('button[value=allow]').focus()")
    await page.press("Enter")
    await page.until("location.pathname === '/account'")
    assert device.poll().status_code == 200

    app = CommandLine(signin_hub)
    try:
        query = app.start_url.partition("?")[2]
        await page.go(f"{signin_hub.url}/api/v1/auth/spa/start?{query}&app_name=Orchard")
        await page.until("document.querySelector('h1')?.textContent.includes('Orchard')")
        await page.evaluate("document.querySelector('button[value=allow]').focus()")
        await page.press("Enter")  # the policy must let this form lead to the app

        async def landed() -> list[dict[str, str]]:
            return app.landed

        await eventually(landed, "the code came to the app", within_s=20)
        answer = app.exchange(app.landed[0]["code"], path="/api/v1/auth/spa/exchange")
        assert answer.json()["tokenName"] == "Orchard"
    finally:
        app.close()
    assert page.complaints == []
