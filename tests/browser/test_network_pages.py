"""The pages of a network in a browser, and the page that signs an envelope there."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, expect

from agnt.wire.errors import Json
from agnt.wire.signing import SigningKeys, read_key, verify_body, verify_payload
from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER
VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "agnt" / "vectors.json").read_text())
SECRET = "a-secret-of-this-test"
MAKE = "from tests.browser.network_rows import make_network; make_network('{login}')"
SUBMIT_TWICE = """() => {
  const form = document.getElementById("import");
  form.requestSubmit();
  const said = document.getElementById("progress").textContent;
  form.requestSubmit();
  return said;
}"""
BOOK = """
from agnt.models import Booking, Network
network = Network.objects.get(owner__login='{login}')
Booking.objects.create(network=network, venue=network.venues.first(), sender='late_guest')
"""


async def test_an_owner_adds_a_venue_and_makes_a_key(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.sign_in("newhost", then="/desk")
    await page.get_by_role("link", name="Network").click()
    await page.get_by_role("link", name="Add a venue").click()
    await page.get_by_label("Name", exact=True).fill("La Brisa")
    await page.get_by_label("Slug").fill("la-brisa")
    await page.get_by_label("Tags").fill("sunset\ndinner")
    await page.keyboard.press("Tab")  # from a text of several lines, Enter saves nothing
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="La Brisa is in the network.")).to_be_visible()
    await page.get_by_role("link", name="La Brisa").click()
    await expect(page.get_by_label("Tags")).to_have_value("sunset\ndinner")
    await page.get_by_role("button", name="Offer it no longer").click()
    await expect(page.get_by_text("not offered", exact=True)).to_be_visible()
    await visitor.check_calm()
    await visitor.open("/desk/network/keys")
    await page.get_by_label("Name", exact=True).fill("Trip planner")
    await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    token, secret = page.get_by_label("Key", exact=True), page.get_by_label("Signing secret", exact=True)
    shown = await token.input_value()
    assert shown.startswith("agnt_live_")
    await page.get_by_role("button", name="Copy the signing secret").click()
    assert await page.evaluate("navigator.clipboard.readText()") == await secret.input_value()
    await expect(page.get_by_text("0 of 10,000 envelopes today")).to_be_visible()
    await page.get_by_role("link", name="Trip planner").click()
    assert shown not in await page.content()
    await page.get_by_role("button", name="Revoke this key").click()
    await expect(page.get_by_text("Trip planner is revoked.")).to_be_visible()
    await visitor.check_calm()


async def test_a_file_is_imported_once_and_comes_back(visitor: Visitor) -> None:
    page = visitor.page
    rows = ["slug,name,city", *(f"v-{number},Venue {number},Bali" for number in range(60))]
    text = "\r\n".join(rows)
    file: Any = {"name": "venues.csv", "mimeType": "text/csv", "buffer": text.encode()}
    await visitor.sign_in("importer", then="/desk/network/venues/import")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    await page.get_by_label("CSV file").set_input_files(file)
    assert await page.evaluate(SUBMIT_TWICE) == "Importing …"
    await expect(page.get_by_text("60 venues added, 0 changed, 0 as they were.")).to_be_visible()
    assert len(sent) == 1
    await visitor.check_calm()
    await page.get_by_role("link", name="To the venues").click()
    await page.get_by_role("link", name="Next").click()
    await expect(page.get_by_text("Page 2 of 2")).to_be_visible()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Export CSV").click()
    exported = (await (await download.value).path()).read_text()
    assert len(exported.splitlines()) == 61
    await page.keyboard.press("/")
    await page.keyboard.type("v-59")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="1 venue", exact=True)).to_be_visible()


async def test_an_owner_confirms_a_booking_and_stays_in_the_list(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    site.mint("booker", "session")
    await asyncio.to_thread(manage, site.home.env, "shell", "--no-imports", "-c", MAKE.format(login="booker"))
    await visitor.sign_in("booker")
    await visitor.stop_clock()
    await visitor.open("/desk/network")
    waiting = page.locator(".figures dd").nth(3)
    await expect(waiting).to_have_text("13")
    await asyncio.to_thread(manage, site.home.env, "shell", "--no-imports", "-c", BOOK.format(login="booker"))
    await visitor.see_later(waiting, "14")
    await visitor.check_calm()
    await page.get_by_role("link", name="All that wait").click()
    await expect(page.get_by_role("heading", name="14 bookings")).to_be_visible()
    await page.get_by_role("button", name="Confirm: La Brisa, late_guest").click()
    await expect(page.get_by_text("The booking at La Brisa is confirmed.")).to_be_visible()
    await expect(page.get_by_role("heading", name="13 bookings")).to_be_visible()
    await expect(page.get_by_label("Status")).to_have_value("pending")
    await visitor.check_calm()


async def test_a_day_of_the_log_is_asked_for_in_the_visitors_zone(browser: Browser, site: HubProcess) -> None:
    context = await browser.new_context(timezone_id="Asia/Makassar")
    page = await context.new_page()
    site.mint("zoned", "session")
    await asyncio.to_thread(manage, site.home.env, "shell", "--no-imports", "-c", MAKE.format(login="zoned"))
    cookie = {"name": "cw_session", "value": site.mint("zoned", "session"), "url": site.url}
    await context.add_cookies([cookie])  # type: ignore[list-item]
    await page.goto(f"{site.url}/desk/network/log")
    newest = page.locator("tbody th time").first
    day = await newest.evaluate("(one) => new Date(one.dateTime).toLocaleDateString('sv-SE')")
    await page.get_by_label("Day").fill(day)
    await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_text("Days are those of Asia/Makassar.")).to_be_visible()
    assert "tz=Asia%2FMakassar" in page.url
    assert await newest.get_attribute("datetime")
    await context.close()


async def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        await page.locator(f"#{name}").fill(value)


async def test_the_browser_signs_as_the_hub_does(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.open("/demos/agnt/")
    for vector in VECTORS:
        name, key = vector["name"], bytes.fromhex(vector["key"])
        secret = vector["key"] if len(key) == 32 else key.decode()
        await fill(page, secret=secret, payload=vector["payload"], sender=vector["sender"], at=str(vector["ts"]))
        canonical = expect(page.locator("#canonical"), name)
        await canonical.to_have_text(vector["canonical"], use_inner_text=False)
        await expect(page.locator("#signature"), name).to_have_text(vector["sig"])
    await visitor.check_calm()


async def test_what_the_page_signs_is_accepted_and_its_secret_stays_there(visitor: Visitor) -> None:
    page, sent = visitor.page, list[str]()
    await visitor.open("/demos/agnt/")
    page.on("request", lambda request: sent.append(request.url))
    await page.get_by_label("Intent").select_option("booking.confirm")
    await fill(
        page, secret=SECRET, sender="my_agent_001", payload='{"a":7.0,"b":1e-7,"c":-0.0,"d":"café 🦞","e":[1e16]}'
    )
    await page.get_by_role("button", name="Now").click()
    await expect(page.get_by_text("with a key of 21 bytes, read as UTF-8")).to_be_visible()
    text = await page.locator("#envelope").text_content() or ""
    envelope: Json = json.loads(text)
    keys, payload = SigningKeys(read_key(SECRET)), envelope["payload"]
    now_s = int(await page.get_by_label("Time, in Unix seconds").input_value())
    assert (envelope["intent"], envelope["from"]) == ("booking.confirm", "my_agent_001")
    assert verify_payload(payload, keys=keys, sender="my_agent_001", now_s=now_s) == payload["_sig"]
    curl = await page.locator("#curl").text_content() or ""
    header = curl.partition("X-A2A-Envelope-Signature: ")[2].partition("'")[0]
    verify_body(header, text.encode(), keys=keys, now_s=now_s)
    await page.get_by_label("A signature to compare with").fill(payload["_sig"])
    await expect(page.get_by_text("Your signature is the same.")).to_be_visible()
    await page.get_by_label("A signature to compare with").fill("0" * 64)
    await expect(page.get_by_text("Your signature is another one.")).to_be_visible()
    await page.get_by_label("Signing secret").press("Enter")  # submits nothing
    assert sent == []
    assert SECRET not in await page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    await visitor.check_calm()


NOT_SIGNED = [
    ("secret", "", "Give a secret."),
    ("payload", "{", "The payload is no JSON"),
    ("payload", "[1]", "The payload is an object"),
    ("payload", '{"a": 1e999}', "1e999 is too large for a number"),
    ("sender", "no name", "A name has 1 to 128"),
    ("at", "yesterday", "The time is a whole number"),
]


async def test_what_cannot_be_signed_is_said_beside_it_until_it_is_mended(visitor: Visitor) -> None:
    page = visitor.page
    await visitor.open("/demos/agnt/")
    for field, value, said in NOT_SIGNED:
        shown, signature = page.locator(f"#{field}"), page.locator("#signature")
        await expect(signature).to_have_text(re.compile("[0-9a-f]{64}"))
        before = await shown.input_value()
        await fill(page, **{field: value})
        await expect(page.locator("#said")).to_contain_text(said)
        await expect(shown).to_have_attribute("aria-invalid", "true")
        await expect(signature).to_be_empty()
        await fill(page, **{field: before})
        await expect(shown).not_to_have_attribute("aria-invalid", "true")
    await visitor.check_calm()


async def test_without_a_secure_context_the_canonical_form_is_shown(browser: Browser, site: HubProcess) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    await page.add_init_script("Object.defineProperty(crypto, 'subtle', {value: undefined})")  # as of plain http
    await page.goto(f"{site.url}/demos/agnt/")
    await expect(page.locator("#said")).to_contain_text("signs only on pages of https or of this computer")
    await expect(page.locator("#canonical")).to_contain_text('{"_from":"agnt_consumer_42"')
    await context.close()


async def test_the_hub_answers_what_was_signed_with_a_new_key(visitor: Visitor, site: HubProcess) -> None:
    page = visitor.page
    await visitor.sign_in("signer", then="/desk/network/rules")
    await page.get_by_label("Require signed payloads").check()
    await page.get_by_role("button", name="Save").click()
    await visitor.open("/desk/network/keys")
    await page.get_by_label("Name", exact=True).fill("Trip planner")
    await page.get_by_role("button", name="Make a key").click()
    token = await page.get_by_label("Key", exact=True).input_value()
    secret = await page.get_by_label("Signing secret", exact=True).input_value()
    await visitor.open("/demos/agnt/")
    await page.get_by_role("button", name="Now").click()
    await fill(page, secret=secret)
    await expect(page.get_by_text("read as 64 hex digits")).to_be_visible()
    body = await page.locator("#envelope").text_content() or ""
    signature = (
        (await page.locator("#curl").text_content() or "").partition("Envelope-Signature: ")[2].partition("'")[0]
    )
    headers = {**bearer(token), "Content-Type": "application/json", "X-A2A-Envelope-Signature": signature}
    async with web(site.url, headers=headers) as program:
        answer = await program.post("/a2a/v1", content=body)
        assert (answer.status_code, answer.json()["payload"]["count"]) == (200, 0)
        forged = await program.post("/a2a/v1", content=body.replace("sunset", "sunrise"))
        assert forged.json()["payload"]["error"]["code"] == "invalid_signature"
    await visitor.open("/desk/network/log")
    await expect(page.get_by_role("row", name="agnt_consumer_42")).to_have_count(2)
    await expect(page.locator(".badge.bad")).to_have_text("invalid_signature")
    await visitor.check_calm()
