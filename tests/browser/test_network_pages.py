"""The scripts of a network's pages send a file once and sign an envelope. `tests/agnt` has the other tests."""

import json
import re
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from clawbridge.agnt.fields import Json
from clawbridge.agnt.signing import SigningKeys, read_key, verify_body, verify_payload
from lab.hub_process import HubProcess
from tests.agnt.wire import mint, program
from tests.browser.chrome import IN_BROWSER
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER
VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "agnt" / "vectors.json").read_text())
SECRET = "a-secret-of-this-test"
SUBMIT_TWICE = """() => {
  const form = document.getElementById("import");
  form.requestSubmit();
  const said = document.getElementById("progress").textContent;
  form.requestSubmit();
  return said;
}"""


async def test_a_file_is_imported_once(visitor: Visitor) -> None:
    page = visitor.page
    rows = ["slug,name,city", *(f"v-{number},Venue {number},Bali" for number in range(3))]
    text = "\r\n".join(rows)
    file: Any = {"name": "venues.csv", "mimeType": "text/csv", "buffer": text.encode()}
    await visitor.sign_in("importer", then="/desk/network/venues/import")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    await page.get_by_label("CSV file").set_input_files(file)
    assert await page.evaluate(SUBMIT_TWICE) == "Importing …"
    await expect(page.get_by_text("3 venues added, 0 changed, 0 as they were.")).to_be_visible()
    assert len(sent) == 1
    await visitor.check_calm()


async def test_a_long_sender_leaves_every_column_of_the_log_in_sight(visitor: Visitor, site: HubProcess) -> None:
    asker = program(site, mint(site, "logger"))
    async with asker.client:
        assert (await asker.send(from_="x" * 128)).status_code == 200
    await visitor.sign_in("logger", then="/desk/network/log")
    beyond = await visitor.page.locator(".table-scroll").evaluate("(one) => one.scrollWidth - one.clientWidth")
    assert beyond == 0


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
        await expect(shown).to_have_css("border-top-color", "rgb(179, 38, 30)")
        await expect(signature).to_be_empty()
        await fill(page, **{field: before})
        await expect(shown).not_to_have_attribute("aria-invalid", "true")
    await visitor.check_calm()


async def test_without_a_secure_context_the_canonical_form_is_shown(visitor: Visitor) -> None:
    page = visitor.page
    await page.add_init_script("Object.defineProperty(crypto, 'subtle', {value: undefined})")  # as of plain http
    await visitor.open("/demos/agnt/")
    await expect(page.locator("#said")).to_contain_text("signs only on pages of https or of this computer")
    await expect(page.locator("#canonical")).to_contain_text('{"_from":"agnt_consumer_42"')
