"""`/docs`: every document, its links and the search over all of them."""

import re
from pathlib import PurePosixPath

import pytest
from django.test import Client

from hub.docs.library import ASKING, FOR_DEVELOPERS, GROUPS, PUBLISHING, docs_folder, pages, shown_files
from hub.docs.search import SearchIndex, index, search
from kit.markdown import read_document, split_document

pytestmark = pytest.mark.django_db
CHROME_IDS = {"main", "failures", "toasts", "theme", "q"}


def html_of(address: str) -> str:
    answer = Client().get(address)
    assert answer.status_code == 200, address
    assert len(answer.content) < 120_000, address
    return answer.content.decode()


def test_every_document_is_shown_or_is_for_developers() -> None:
    names = {
        path.stem for folder in ("howto", "topics", "reference") for path in (docs_folder() / folder).glob("*.md")
    }
    assert set(shown_files()) == (names | {"glossary"}) - FOR_DEVELOPERS
    assert {name for group in GROUPS.values() for name in group} <= set(shown_files())
    contents = html_of("/docs")
    for name in shown_files():
        assert f'href="/docs/{name}"' in contents


def test_guides_stand_in_the_group_of_what_they_are_for() -> None:
    assert pages()["use-from-mcp"].group == ASKING
    assert pages()["limit-costs"].group == pages()["alerts"].group == PUBLISHING
    assert pages()["capacity"].path == PurePosixPath("topics/capacity.md")
    assert pages()["glossary"].address == "/docs/glossary"


def test_every_link_of_a_document_leads_somewhere() -> None:
    ids = {name: set(re.findall(r' id="([^"]+)"', html_of(f"/docs/{name}"))) for name in shown_files()}
    for name in shown_files():
        page = html_of(f"/docs/{name}")
        found = re.findall(r' id="([^"]+)"', page)
        assert len(found) == len(set(found)), name
        assert set(found) & CHROME_IDS == CHROME_IDS
        for target, anchor in re.findall(r'href="(?:/docs/([a-z0-9-]+))?#([^"]+)"', page):
            assert anchor in ids[target or name] or target == "api", (name, target, anchor)
        assert "javascript:" not in page


def test_a_link_to_a_file_that_is_not_shown_is_its_text() -> None:
    said = "See [why](../adr/0003-x.md), [B](b.md#c-d), [out](https://a.example/x) and [here](#two)."
    text = f"# A\n\n{said}\n\n## Two\n\n## Two"
    links = {"b.md#c-d": "/docs/b#s-c-d", "#two": "#s-two", "https://a.example/x": "https://a.example/x"}
    document = read_document(text, links.get)
    assert document.title == "A"
    assert [one.id for one in document.sections] == ["", "s-two", "s-two-1"]
    assert 'See why, <a href="/docs/b#s-c-d" rel="noopener">B</a>' in document.html
    assert document.html.count("<a ") == 3


def test_a_document_cannot_bring_scripts_into_the_page() -> None:
    table = "| a | | |\n|---|---|---|\n| <b>b</b> | | c |\n"
    document = read_document(f"# A\n\n<script>x</script> [x](javascript:x)\n\n{table}", lambda link: link)
    assert "<script" not in document.html
    assert "<a " not in document.html
    assert 'aria-label="Table 1"' in document.html
    assert (document.html.count("<th>"), document.html.count("</th>")) == (1, 1)
    assert "&lt;b&gt;" in document.html


def test_an_absent_document_is_not_found() -> None:
    for path in ("/docs/nothing", "/docs/bench", "/docs/api/nothing", "/docs/0003-database-work-in-pool-threads"):
        assert Client().get(path).status_code == 404, path


def test_the_search_finds_documents_calls_and_frames_by_all_words() -> None:
    headings = [(one.entry.kind, one.entry.heading) for one in search(["webhooks", "replay"])]
    assert ("REST API", "POST /api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/replay") in headings
    assert search(["daily", "budget", "unheard-of"]) == []
    assert search(["reply_chunk"])[0].entry.address.startswith("/docs/")
    best = search(["back", "up"])[0].entry
    assert (best.page, best.heading) == ("Operate", "Back up")


def test_the_search_reads_the_sections_that_the_pages_show() -> None:
    for page in pages().values():
        shown, split = page.document.sections, split_document((docs_folder() / page.path).read_text())
        assert [(one.id, one.level, one.heading) for one in split] == [
            (one.id, one.level, one.heading) for one in shown
        ], page.name
        for one, other in zip(split, shown, strict=True):
            assert re.findall(r"\w+", one.text) == re.findall(r"\w+", other.text), (page.name, one.heading)


def test_the_first_search_renders_no_document() -> None:
    pages.cache_clear()
    assert SearchIndex().entries
    assert not [page.name for page in pages().values() if "document" in vars(page)]


@pytest.mark.parametrize("address", ["/docs", "/docs/gateway", "/docs/api", "/docs/api/sockets"])
def test_the_index_is_built_ahead_by_each_page_with_the_search(address: str) -> None:
    """A visitor opens one page, and then types."""
    index.cache_clear()
    assert 'class="search docs-search"' in html_of(address)
    assert index().building is not None
    index().building.join()
    assert {one.kind for one in index().entries} > {"REST API", "Socket", ASKING}
    assert "Nothing found" not in html_of("/docs?q=token")


def test_the_search_shows_what_was_typed_as_text() -> None:
    text = html_of("/docs?q=%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>alert" not in text
    assert "Nothing found" in text
    assert "places" in html_of("/docs?q=TOKEN")
    assert "Ask agents" in html_of("/docs?q=%09%20")
