"""Files that go with a question on an agent's page: chosen, dropped, pasted, removed, uploaded, and shown."""

import os
from pathlib import Path

from playwright.async_api import Page, expect

from lab.agents import Echo, online
from lab.hub_process import HubProcess
from lab.pictures import png, png_of
from tests.browser.chrome import IN_BROWSER
from tests.browser.conversation import ask, last, said
from tests.browser.visitor import Visitor

SHOTS = os.environ.get("SHOTS")
pytestmark = IN_BROWSER

TAKES = {"defaultInputModes": ["text/plain", "image/*", "application/pdf"]}
PAGE_OF_PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R
/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F 24 Tf 40 100 Td (A plan) Tj ET
endstream endobj
trailer<</Root 1 0 R>>
"""
DROP = """([name, type, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type }));
  const form = document.getElementById("ask");
  form.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
PASTE = """([name, type, bytes]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type }));
  const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  document.getElementById("question").dispatchEvent(event);
}"""


async def drop(page: Page, name: str, mime: str, data: bytes, how: str = DROP) -> None:
    await page.evaluate(how, [name, mime, list(data)])


async def test_pictures_and_papers_go_with_a_question_and_are_shown(
    visitor: Visitor, site: HubProcess, tmp_path: Path
) -> None:
    page = visitor.page
    async with online(site, Echo, agent=TAKES) as agent:
        # A headless shell shows no PDF, and so the page would offer none.
        await page.add_init_script("Object.defineProperty(navigator, 'pdfViewerEnabled', { get: () => true })")
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        paper = tmp_path / "plan.pdf"
        paper.write_bytes(PAGE_OF_PDF)
        await page.get_by_label("Files", exact=True).set_input_files(paper)
        await drop(page, "map.png", "image/png", png(90))
        await drop(page, "notes.md", "text/markdown", b"# notes", PASTE)
        attached = page.locator("#files li")
        await expect(attached).to_have_count(3)
        await expect(page.locator("#files progress")).to_have_count(0)
        await expect(page.locator("#files img")).to_have_count(1)
        await expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/files-attached.png")
        await ask(visitor, "what is this?")
        await said(visitor, "Answered")
        turn = last(visitor)
        picture = turn.locator("figure img")
        assert await picture.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 90
        await turn.get_by_text("Show the first page").click()
        frame = turn.locator("iframe")
        await frame.wait_for()
        assert "/preview#page=1" in (await frame.get_attribute("src") or "")
        if SHOTS:
            await page.wait_for_timeout(2000)
            await page.screenshot(path=f"{SHOTS}/files-shown.png", full_page=True)
        [prompt] = agent.prompts
        assert [part.get("filename") for part in prompt["parts"]] == [None, "plan.pdf", "map.png", "notes.md"]
        await page.reload()
        shown = last(visitor)
        await expect(shown.locator("figure img")).to_have_count(1)
        assert (
            await shown.locator("figure img").evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 90
        )
        await expect(shown.get_by_role("link", name="plan.pdf")).to_have_attribute("download", "plan.pdf")


async def test_a_file_is_removed_with_the_keyboard_and_refused_files_say_why(
    visitor: Visitor, site: HubProcess
) -> None:
    page = visitor.page
    async with online(site, Echo, agent=TAKES) as agent:
        await visitor.sign_in("alice", then=f"/agents/{agent.handle}")
        await drop(page, "one.png", "image/png", png(9))
        await drop(page, "two.png", "image/png", png(10))
        await expect(page.locator("#files progress")).to_have_count(0)
        await page.get_by_role("button", name="Remove one.png").focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Remove two.png")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Attach")).to_be_focused()
        error = page.locator("#ask-error")
        await drop(page, "lie.png", "image/png", b"<script>alert(1)</script>")
        await expect(error).to_have_text("lie.png: declared as image/png, but its content is text/html")
        await drop(page, "bomb.png", "image/png", png_of(60_000, 60_000, bytes(10)))
        await expect(error).to_contain_text("60000 x 60000 pixels; at most 50 million are taken")
        await drop(page, "a.mp3", "audio/mpeg", b"\xff\xfb\x90\0")
        await expect(error).to_have_text(
            "a.mp3: this agent takes text, JSON and image/*, application/pdf, and this is audio/mpeg."
        )
        await expect(page.locator("#files li")).to_have_count(0)
        assert agent.prompts == []
