"""The REST of networks at a running hub: files larger than other bodies, and changes at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from lab.callers import TLS, bearer
from lab.hub_process import HubProcess

VENUES = "/api/v1/network/venues"
HEAD = "slug,name,category,area,city,description,tags,price_range,referral_fee_pct,priority_rank,active"
HEAD += ",agent_id,agent,url\r\n"
ROWS = 550


def client(hub: HubProcess, token: str | None) -> httpx.Client:
    headers = bearer(token) if token else {}
    return httpx.Client(base_url=hub.url, headers=headers, timeout=60, trust_env=False, verify=TLS)


def send(web: httpx.Client, text: str) -> httpx.Response:
    return web.post(f"{VENUES}/import", files={"file": ("venues.csv", text.encode(), "text/csv")})


@pytest.mark.slow
def test_a_file_of_two_mebibytes_is_imported_and_comes_back(hub: HubProcess) -> None:
    row = "v-{0},Venue {0},bar,,Ubud,{1},a;b,$$,7.00,0,true,agent_{0},,\r\n"
    text = HEAD + "".join(row.format(number, "x" * 4000) for number in range(ROWS))
    assert len(text) > 2 * 1024 * 1024
    with client(hub, hub.mint("carla", "session")) as web:
        assert send(web, text).json()["created"] == ROWS
        assert web.get(f"{VENUES}/export").text == text
        assert web.get(VENUES, params={"limit": 1}).json()["total"] == ROWS
        assert send(web, "x" * (11 * 1024 * 1024)).status_code == 413
    with client(hub, None) as web:
        assert send(web, text).status_code == 401


def test_of_requests_for_one_slug_at_once_one_makes_the_venue(hub: HubProcess) -> None:
    token = hub.mint("dora", "session")

    def make(number: int) -> Any:
        with client(hub, token) as web:
            return web.post(VENUES, json={"slug": "one" if number % 2 else "ONE", "name": "One"}).status_code

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(make, range(8)))
    assert sorted(said) == [201] + [409] * 7
    with client(hub, token) as web:
        assert web.get(VENUES).json()["total"] == 1
