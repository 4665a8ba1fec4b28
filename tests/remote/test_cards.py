"""Reading cards: which way the hub goes, which cards it refuses, and where it does not go."""

import asyncio
from typing import Any

import pytest

from agents.links.remote.card import (
    Auth,
    BadAuth,
    BadCard,
    fetch_card,
    find_card,
    make_auth,
    may_have_credentials,
    read_card,
)
from agents.links.remote.publishing import look_again
from kit.async_db import db_call
from kit.safe_http import NotSent, StreamingHttp, TargetRules
from tests.remote.caller import Caller, server_of
from tests.remote.servers import Asked, as_http, in_full, raw_server

HERE = "https://far.example/.well-known/agent-card.json"
JSONRPC_10, HTTP_10, JSONRPC_03 = ("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")
OFFERS: list[tuple[list[tuple[str, str]], tuple[str, str]]] = [
    ([JSONRPC_03, HTTP_10, JSONRPC_10], JSONRPC_10),
    ([JSONRPC_03, HTTP_10], HTTP_10),
    ([("GRPC", "1.0"), JSONRPC_03], JSONRPC_03),
    ([("JSONRPC", "1.0.1")], JSONRPC_10),
    ([("JSONRPC", "1")], JSONRPC_10),
    ([("JSONRPC", "0.3.0")], JSONRPC_03),
]


def offering(ways: list[tuple[str, str]]) -> dict[str, Any]:
    listed = [
        {"url": f"/{number}", "protocolBinding": binding, "protocolVersion": version}
        for number, (binding, version) in enumerate(ways)
    ]
    return {"name": "far", "supportedInterfaces": listed}


def test_the_best_way_is_chosen(subtests: pytest.Subtests) -> None:
    for ways, chosen in OFFERS:
        with subtests.test(ways=ways):
            interface = read_card(HERE, offering(ways)).interface
            assert (interface.binding, interface.version) == chosen
            assert interface.url.startswith("https://far.example/")
    for none in ([("GRPC", "1.0")], [("JSONRPC", "0.2.5")], [("JSONRPC", "2.0")], [("HTTP+JSON", "0.3")], []):
        with subtests.test(ways=none), pytest.raises(BadCard, match="offers none"):
            read_card(HERE, offering(none))


def test_a_card_of_0_3_may_name_json_rpc_beside_what_it_prefers() -> None:
    card = {"name": "old", "url": "https://far.example/grpc", "preferredTransport": "GRPC"}
    more = [{"url": "https://far.example/rpc", "transport": "JSONRPC"}]
    interface = read_card(HERE, {**card, "additionalInterfaces": more}).interface
    assert (interface.url, interface.version) == ("https://far.example/rpc", "0.3")


def test_an_interface_with_a_malformed_address_is_passed_over() -> None:
    card = offering([JSONRPC_10, HTTP_10])
    card["supportedInterfaces"][0]["url"] = "https://[1.2.3.4]/"
    assert read_card(HERE, card).interface.binding == "HTTP+JSON"
    with pytest.raises(BadCard, match="offers none"):
        read_card(HERE, {"name": "old", "url": "https://[1.2.3.4x]/"})


def test_credentials_stay_with_the_host_that_the_parser_of_requests_reads(subtests: pytest.Subtests) -> None:
    assert may_have_credentials(HERE, "https://FAR.example/rpc")
    for url in ("https://[1.2.3.4]/", "http://far.example/", "\thttps://far.example/"):
        with subtests.test(url=url):
            assert not may_have_credentials(HERE, url)


def test_what_is_no_card_is_refused(subtests: pytest.Subtests) -> None:
    for value in (None, [], "card", {}, {"name": 5}, {"name": "x"}, {"name": "x", "skills": 7}):
        with subtests.test(card=value), pytest.raises(BadCard):
            read_card(HERE, value)
    card = offering([JSONRPC_10]) | {"capabilities": {"extensions": [{"uri": "urn:x", "required": True}]}}
    with pytest.raises(BadCard, match="urn:x"):
        read_card(HERE, card)


async def test_it_is_found_above_its_place(caller: Caller, subtests: pytest.Subtests) -> None:
    async with raw_server(_not_found) as far:
        for url in (far.url, f"{far.url}/", far.card_url):
            with subtests.test(url=url):
                assert (await asyncio.to_thread(find_card, url, Auth())).url == far.card_url
        with pytest.raises(BadCard, match="HTTP 404"):
            await asyncio.to_thread(find_card, f"{far.url}/elsewhere.json", Auth())


async def test_redirects_are_not_followed(caller: Caller) -> None:
    async def away(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(as_http(b"", status="302 Go", more="Location: /.well-known/agent-card.json\r\n"))

    async with raw_server(away) as far:
        with pytest.raises(BadCard, match="no redirect"):
            await asyncio.to_thread(fetch_card, f"{far.url}/card.json", Auth())


async def test_credentials_stay_with_the_cards_host(caller: Caller) -> None:
    auth = make_auth("Bearer", "secret")
    elsewhere = offering([JSONRPC_10])
    elsewhere["supportedInterfaces"][0]["url"] = "http://localhost:9/a2a"
    async with raw_server(_not_found, card=elsewhere) as far:
        with pytest.raises(BadCard, match="another host"):
            await asyncio.to_thread(fetch_card, far.card_url, auth)


async def test_sealed_credentials_are_sent_and_do_not_move(caller: Caller) -> None:
    async with raw_server(_echo_of_a_message) as far, raw_server(_not_found) as other:
        auth = make_auth("Bearer", "s3cret-word")
        agent = await caller.publish(far.card_url, auth)
        await caller.ask(agent, "hello")
        assert far.seen.requests[0]["headers"]["authorization"] == "Bearer s3cret-word"
        server = await server_of(agent)
        assert "s3cret" not in server.credentials
        moved = other.card_url.replace("127.0.0.1", "localhost")
        with pytest.raises(BadAuth):
            await db_call(look_again)(server, moved, None)
        place = await db_call(look_again)(server, None, None)
        assert (place.card.url, place.auth) == (far.card_url, auth)


def test_what_cannot_stand_in_a_header_is_refused(subtests: pytest.Subtests) -> None:
    for credentials in ("", "x\r\nX: y", "é", "x" * 5000):
        with subtests.test(credentials=credentials), pytest.raises(BadAuth):
            make_auth("Bearer", credentials)
    for scheme in ("", "Be arer"):
        with subtests.test(scheme=scheme), pytest.raises(BadAuth):
            make_auth(scheme, "x")


async def test_the_public_internet_only(caller: Caller, settings: Any, subtests: pytest.Subtests) -> None:
    """The card was fine when it was published; then its names lead home."""
    settings.REMOTE_ALLOW_PRIVATE = False
    async with raw_server(_not_found) as far:
        for url in (far.card_url, far.card_url.replace("http:", "https:"), "https://localhost/c.json"):
            with subtests.test(url=url), pytest.raises(BadCard):
                await asyncio.to_thread(fetch_card, url, Auth())
        assert far.seen.requests == []


async def test_no_name_leads_a_stream_home(subtests: pytest.Subtests) -> None:
    for address in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"):
        with subtests.test(address=address):
            found = ["8.8.8.8", address]
            http = StreamingHttp(TargetRules(), resolve=lambda host, port, found=found: found)
            with pytest.raises(NotSent, match="does not lead to public addresses"):
                async with http.stream("POST", "https://far.example/", headers={}):
                    raise AssertionError("it was sent")
            http.close()


async def _not_found(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(as_http(b"{}", status="404 No"))


async def _echo_of_a_message(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.write(in_full(asked, {"message": {"role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}))
