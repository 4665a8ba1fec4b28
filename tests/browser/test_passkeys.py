"""An account by a link, with a passkey of a real browser; every way to sign in on one page."""

from playwright.async_api import Browser, expect

from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage, manage
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor, visiting

pytestmark = IN_BROWSER

SETTINGS = {
    "ALLOWED_HOSTS": "hub.lan",
    "GITHUB_CLIENT_ID": "x",
    "GITHUB_CLIENT_SECRET": "y",
    "OIDC_ISSUER": "https://id.example.org/realms/acme https://accounts.example.com",
    "OIDC_CLIENT_ID": "a b",
    "OIDC_CLIENT_SECRET": "c d",
    "OIDC_NAME": "Acme, Example Accounts",
}
NEED_HTTPS = "Passkeys work over https only, and this page came over http."
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


async def test_a_passkey_is_made_by_a_link_and_signs_in(
    browser: Browser, make_storage: MakeStorage, start_hub: StartHub
) -> None:
    home = make_storage("embedded")
    hub = start_hub(home, name="localhost", **SETTINGS)
    url = hub.url.replace("127.0.0.1", "localhost")
    path = manage(home.env | {"PUBLIC_URL": url}, "invite", "ann").strip().removeprefix(url)
    async with visiting(browser, url) as visitor:
        await give_authenticator(visitor)
        await visitor.open(path)
        await visitor.check()
        await visitor.page.get_by_role("button", name="Make a passkey").click()
        await expect(visitor.page.get_by_role("link", name="@ann")).to_be_visible()
        await visitor.page.get_by_role("button", name="Sign out").click()
        await visitor.open("/signin?next=/account")
        for name in ("Acme", "Example Accounts", "GitHub"):
            await expect(visitor.page.get_by_role("link", name=f"Sign in with {name}")).to_be_visible()
        await visitor.check()
        await visitor.page.get_by_role("button", name="Sign in with a passkey").click()
        await expect(visitor.page.get_by_role("heading", name="@ann")).to_be_visible()
        await visitor.check_calm()
        visitor.expected = ["status of 404"]
        await visitor.open(path)
        await expect(visitor.page.get_by_text("This link is not good")).to_be_visible()
        await visitor.page.goto(f"{url.replace('localhost', 'hub.lan')}/signin")
        await expect(visitor.page.get_by_role("alert")).to_have_text(NEED_HTTPS)
        await expect(visitor.page.get_by_role("button", name="Sign in with a passkey")).to_be_disabled()


async def give_authenticator(visitor: Visitor) -> None:
    """A device that makes and keeps passkeys, and whose user always agrees."""
    session = await visitor.page.context.new_cdp_session(visitor.page)
    await session.send("WebAuthn.enable")
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
