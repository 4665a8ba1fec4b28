"""The pages of the API show every call and frame; on a phone, see `browser/test_every_page.py`."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest
from django.test import Client

from accounts.middleware import PAGE_POLICY
from hub.descriptions.asyncapi import asyncapi
from hub.descriptions.openapi import openapi
from hub.descriptions.page import example, fields_of, type_of


@pytest.fixture
def contents(db: None) -> str:
    return html_of("/docs/api")


@pytest.fixture
def pages(contents: str) -> dict[str, str]:
    """The page of each tag, by its address."""
    addresses = set(re.findall(r'href="(/docs/api/[^"#]+)"', contents))
    return {address: html_of(address) for address in addresses}


def html_of(address: str) -> str:
    answer = Client().get(address)
    assert answer.status_code == 200
    assert answer["Content-Security-Policy"] == PAGE_POLICY
    assert len(answer.content) < 120_000, address
    return answer.content.decode()


def operations() -> Iterator[tuple[str, Any]]:
    for path, item in openapi()["paths"].items():
        yield from ((path, one) for one in item.values())


def test_every_call_has_a_line_that_leads_to_it(contents: str, pages: dict[str, str]) -> None:
    for path, one in operations():
        address = f"/docs/api/{one['tags'][0]}"
        assert f'href="{address}#{one["operationId"]}"' in contents
        assert f'id="{one["operationId"]}"' in pages[address]
        assert f"</b> {path}</code>" in pages[address]


def test_every_frame_is_shown(pages: dict[str, str]) -> None:
    for name, operation in asyncapi()["operations"].items():
        page = pages["/docs/api/a2a-v1" if name.startswith("gateway.") else "/docs/api/sockets"]
        for message in operation["messages"]:
            tag = message["$ref"].rpartition("/")[2]
            assert f'id="{name.replace(".", "-")}-{tag}"' in page


def test_anchors_are_unique_and_links_lead_to_them(contents: str, pages: dict[str, str]) -> None:
    for page in (contents, *pages.values()):
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)
        assert set(re.findall(r' for="([^"]+)"', page)) <= set(ids)


def test_the_contents_lead_to_the_documents(contents: str) -> None:
    for address in ("/api/v1/schema", "/api/ws-docs/json", "/api/ws-docs/yaml", "/demos/a2a/"):
        assert f'href="{address}"' in contents


def test_they_show_no_marks_and_name_no_file_of_the_checkout(contents: str, pages: dict[str, str]) -> None:
    for page in (contents, *pages.values()):
        assert "`" not in page
        assert ".md" not in page.replace("/usage.md", "")  # an address of the hub's


def test_they_have_nothing_inline(contents: str, pages: dict[str, str]) -> None:
    for page in (contents, *pages.values()):
        assert not re.search(r"<script(?![^>]* src=)", page)
        assert "<style" not in page
        assert not re.search(r"\s(style|on\w+)=", page)


def test_a_form_asks_for_what_its_call_takes(pages: dict[str, str]) -> None:
    blocks = pages["/docs/api/blocks"]
    form = blocks.partition('data-call="POST /api/v1/blocks"')[2].partition("</form>")[0]
    assert "&quot;login&quot;: &quot;…&quot;" in form
    form = blocks.partition('data-call="DELETE /api/v1/blocks/{login}"')[2].partition("</form>")[0]
    assert 'name="login" data-place="path"' in form
    assert 'data-call="POST /api/v1/sessions/{public_id}/files"' not in pages["/docs/api/sessions"]
    assert '<form class="try' not in pages["/docs/api/a2a"]


def test_bodies_of_which_one_is_sent_stand_apart_each_by_its_name(pages: dict[str, str]) -> None:
    ask = pages["/docs/api/a2a"].partition('id="ask"')[2].partition("<h3>Answers")[0]
    found = re.findall(r"<summary><code>(.*?)</code>", ask.partition("<h3>Body: one of these")[2])
    titles = [unescape(one) for one in found]
    assert len(titles) == len(set(titles)) == 23
    assert {"SendMessage, the hub's own dialect", "SendMessage, A2A 1.0", "message/send, A2A 0.3"} < set(titles)


DOCUMENT = {
    "components": {
        "schemas": {
            "Node": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "maxLength": 9},
                    "next": {"anyOf": [{"$ref": "#/components/schemas/Node"}, {"type": "null"}]},
                    "kind": {"enum": ["a", "b"]},
                    "days": {"type": "integer", "minimum": 1, "default": 7},
                },
                "required": ["name", "next"],
            }
        }
    }
}
NODE = {"$ref": "#/components/schemas/Node"}


def test_a_type_is_a_few_words() -> None:
    fields = {field.name: field.type for field in fields_of(DOCUMENT, NODE, depth=4)}
    assert fields == {
        "name": "string, at most 9 characters",
        "next": "Node or null",
        "kind": '"a" or "b"',
        "days": "integer, at least 1, default 7",
    }
    assert type_of(DOCUMENT, {"type": "array", "items": NODE}) == "list of Node"


def test_a_type_that_holds_itself_ends() -> None:
    assert 4 < len(list(fields_of(DOCUMENT, NODE))) < 40
    assert example(DOCUMENT, NODE)["name"] == "…"
