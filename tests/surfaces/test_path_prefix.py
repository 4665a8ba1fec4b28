"""A hub whose PUBLIC_URL has a path: every address that it gives is below it; a proxy may cut the path off."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

from kit import env
from lab import ROOT
from lab.agents import Echo, online
from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.v1.caller import message, reply_of

PREFIX = "/at/the/hub"
ORIGIN = "http://127.0.0.1:9"  # of the proxy that there would be
PUBLIC_URL = ORIGIN + PREFIX
MAX_ALIKE = 8  # pages of one folder: those of the documentation have one template


@pytest.fixture(scope="module")
def hub_below(make_storage: MakeStorage) -> Iterator[HubProcess]:
    hub = HubProcess.start(make_storage("embedded"), PUBLIC_URL=PUBLIC_URL, DEV_LOGIN="1")
    yield hub
    hub.stop()


class Links(HTMLParser):
    """The addresses in a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.token = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.found |= {value for name in ("href", "src", "action") if (value := given.get(name))}
        data = [value for name, value in attrs if value and name.startswith("data-")]
        self.found |= {value for value in data if value.startswith("/")}
        if given.get("name") == "csrfmiddlewaretoken":
            self.token = given["value"] or ""


@asynccontextmanager
async def signed_in(hub: HubProcess, login: str) -> AsyncIterator[httpx.AsyncClient]:
    """A browser that went through the sign-in page."""
    async with web(hub.url) as client:
        form = await client.get(f"{PREFIX}/signin?next={PREFIX}/desk")
        fields = {"login": login, "csrfmiddlewaretoken": Links(form.text).token, "next": f"{PREFIX}/desk"}
        answer = await client.post(f"{PREFIX}/signin", data=fields, headers={"Origin": ORIGIN})
        assert (answer.status_code, answer.headers["location"]) == (302, f"{PREFIX}/desk"), answer.text
        cookies = [one for one in answer.headers.get_list("set-cookie") if one.startswith("cw_session=")]
        assert all(f"Path={PREFIX};" in f"{one};" for one in cookies)
        assert len(cookies) == 1
        yield client


async def test_every_address_in_the_pages_is_below_it_and_answers(hub_below: HubProcess) -> None:
    async with online(hub_below, Echo), signed_in(hub_below, "owner") as browser:
        waiting, seen, folders = [f"{PREFIX}/", f"{PREFIX}/admin/"], set[str](), Counter[str]()
        while waiting:
            path = waiting.pop(0)
            folders[path.rpartition("/")[0]] += 1
            if folders[path.rpartition("/")[0]] > MAX_ALIKE and path.count("/") > PREFIX.count("/") + 1:
                continue
            seen.add(path)
            answer = await browser.get(path)
            if answer.status_code in (301, 302):
                assert answer.headers["location"].startswith(f"{PREFIX}/"), (path, answer.headers["location"])
                continue
            assert answer.status_code in (200, 400, 403, 405), (path, answer.status_code)  # it is there
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            for link in Links(answer.text).found:
                address = urlsplit(urljoin(ORIGIN + path, link))
                if f"{address.scheme}://{address.netloc}" != ORIGIN:
                    continue
                assert f"{address.path}/".startswith(f"{PREFIX}/"), (path, link)
                if address.path not in seen and address.path not in waiting and "export" not in address.path:
                    waiting.append(address.path)
        assert {f"{PREFIX}/{page}" for page in ("", "desk", "account", "docs", "static/js/site.js")} <= seen
        async with web(hub_below.url) as stranger:  # through a proxy that cuts the path off
            stripped = await stranger.get("/docs")
            assert stripped.text == (await stranger.get(f"{PREFIX}/docs")).text
        assert (await browser.get(f"{PREFIX}x/docs")).status_code == 404
        out = await browser.get(f"{PREFIX}/signin?next=//elsewhere.example/")
        assert "elsewhere" not in out.text


async def test_cards_catalogs_descriptions_and_sockets_are_below_it(hub_below: HubProcess) -> None:
    hub = hub_below
    token = hub.mint("owner", "channel")
    async with online(hub, Echo) as published, Echo(hub.url + PREFIX, token) as dialled, web(hub.url) as client:
        assert dialled.session_id
        base = f"{PUBLIC_URL}/api/a2a/v1/agents/{published.handle}"
        card: Json = (await client.get(f"{base.removeprefix(ORIGIN)}/.well-known/agent-card.json")).json()
        assert {one["url"] for one in card["supportedInterfaces"]} >= {base}
        headers = bearer(hub.mint("alice", "session")) | {"A2A-Version": "1.0", "A2A-Extensions": ""}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("hi")}}
        for path in (base.removeprefix(ORIGIN), base.removeprefix(PUBLIC_URL)):
            answer = await client.post(path, json=asked, headers=headers)
            assert reply_of(answer.json()["result"]["task"]) == "echo: hi"
        catalog = (await client.get(f"{PREFIX}/.well-known/ai-catalog.json")).json()
        assert all(one["url"].startswith(f"{PUBLIC_URL}/") for one in catalog["entries"])
        schema = (await client.get(f"{PREFIX}/api/v1/schema?format=json")).json()
        assert schema["servers"] == [{"url": PUBLIC_URL}]
        assert "/api/v1/me" in schema["paths"]
        sockets = (await client.get(f"{PREFIX}/api/ws-docs/json")).json()
        assert sockets["servers"]["hub"] == {"host": "127.0.0.1:9", "protocol": "ws", "pathname": PREFIX}
        device = await client.post(f"{PREFIX}/api/v1/auth/device/code", json={"app_name": "a", "machine_id": "m"})
        assert device.json()["verification_uri"] == f"{PUBLIC_URL}/device"


async def test_the_cookie_is_taken_from_its_own_origin_alone(hub_below: HubProcess) -> None:
    async with signed_in(hub_below, "carol") as browser:
        path = f"{PREFIX}/api/v1/auth/apps/mint"
        foreign = await browser.post(path, json={"name": "a"}, headers={"Origin": "http://elsewhere.example"})
        own = await browser.post(path, json={"name": "a"}, headers={"Origin": ORIGIN})
        assert (foreign.status_code, own.status_code) == (403, 201)


def test_an_address_that_stands_for_all_needs_a_public_one(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for host in ("0.0.0.0", "[::]", "0", "0x0", "[0:0::0]"):
        with subtests.test(host=host):
            monkeypatch.delenv("PUBLIC_URL", raising=False)
            with pytest.raises(ImproperlyConfigured, match="no address that others can reach: set PUBLIC_URL"):
                env.public_url("PUBLIC_URL", f"http://{host}:8787")
            monkeypatch.setenv("PUBLIC_URL", "https://hub.example")
            assert env.public_url("PUBLIC_URL", f"http://{host}:8787") == "https://hub.example"


def test_a_path_that_proxies_and_browsers_read_differently_is_refused(
    monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for path in ("/a/../b", "/a//b", "/a?b", "/a#b", "/a b", "/%61", "/a;b", "/\u00e4"):
        with subtests.test(path=path):
            monkeypatch.setenv("PUBLIC_URL", f"https://hub.example{path}")
            with pytest.raises(ImproperlyConfigured, match="want an address"):
                env.public_url("PUBLIC_URL", "http://127.0.0.1:8787")


ROOTED = re.compile(r"""(?:fetch|load|WebSocket)\(\s*["`]/|href:\s*["`]/|}/(?:cli|api|desk)""")


def test_no_script_asks_for_an_address_at_the_root() -> None:
    scripts = sorted((ROOT / "static" / "js").glob("*.js"))
    assert len(scripts) > 10
    assert [path.name for path in scripts if ROOTED.search(path.read_text())] == []
