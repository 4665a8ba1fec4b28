"""The page shows every call and frame, to a phone as well."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.middleware import PAGE_POLICY
from hub.descriptions.asyncapi import asyncapi
from hub.descriptions.openapi import openapi
from hub.descriptions.readable import example, fields_of, type_of
from lab.hub_process import HubProcess
from tests.signin.chromium import PROGRAM, chromium


@pytest.fixture(autouse=True)
def _no_collected_files(settings: Any) -> None:
    settings.STATIC_ROOT = None


@pytest.fixture
def page(db: None) -> str:
    answer = Client().get("/docs")
    assert answer.status_code == 200
    assert answer["Content-Security-Policy"] == PAGE_POLICY
    return answer.content.decode()


def operations() -> Iterator[tuple[str, Any]]:
    for path, item in openapi()["paths"].items():
        yield from ((path, one) for one in item.values())


def test_it_shows_every_call(page: str) -> None:
    for path, one in operations():
        assert f'id="{one["operationId"]}"' in page
        assert f"</b> {path}</code>" in page


def test_it_shows_every_frame(page: str) -> None:
    for name, operation in asyncapi()["operations"].items():
        for message in operation["messages"]:
            tag = message["$ref"].rpartition("/")[2]
            assert f'id="{name.replace(".", "-")}-{tag}"' in page


def test_its_anchors_are_unique_and_its_contents_lead_to_them(page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_it_leads_to_the_documents(page: str) -> None:
    for address in ("/api/v1/schema", "/api/ws-docs/json", "/api/ws-docs/yaml", "/demos/a2a/"):
        assert f'href="{address}"' in page


def test_it_shows_no_marks_and_names_no_file_of_the_checkout(page: str) -> None:
    assert "`" not in page
    assert ".md" not in page.replace("/usage.md", "")  # an address of the hub's


def test_it_has_nothing_inline(page: str) -> None:
    assert not re.search(r"<script(?![^>]* src=)", page)
    assert "<style" not in page
    assert not re.search(r"\s(style|on\w+)=", page)


def test_bodies_of_which_one_is_sent_stand_apart_each_by_its_name(page: str) -> None:
    ask = page.partition('id="ask"')[2].partition("<h3>Answers")[0]
    found = re.findall(r"<summary><code>(.*?)</code>", ask.partition("<h3>Body: one of these")[2])
    titles = [unescape(one) for one in found]
    assert len(titles) == len(set(titles)) == 20
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


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no Chromium here")
async def test_it_fits_a_phone_and_the_browser_has_no_complaint(embedded_hub: HubProcess, tmp_path: Path) -> None:
    async with chromium(tmp_path) as tab:
        await tab.call(
            "Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True
        )
        await tab.go(f"{embedded_hub.url}/docs")
        await tab.until("document.readyState === 'complete' && document.querySelectorAll('details').length > 20")
        await tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert await tab.evaluate("document.documentElement.scrollWidth") == 360
        assert tab.complaints == []
