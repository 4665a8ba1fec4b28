"""Cards of remote servers whose owner pinned a key: without a signature by it nothing is asked."""

import itertools
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
import rfc8785
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentSkill
from a2a.utils.signing import create_agent_card_signer
from joserfc import jws
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from jwt import PyJWK

from agents.links.remote.approval import find_changed_card
from agents.links.remote.card import read_card
from agents.links.remote.card_content import (
    NOT_BY_PINNED,
    BadKey,
    BadSignature,
    CardRegistry,
    check_signature,
    read_keys,
    read_keys_text,
)
from agents.models import RemoteServer
from agents.models.session import is_online
from kit.async_db import db_call
from lab.waiting import eventually
from tests.native.rows import Person, api, browser
from tests.remote.caller import Caller, publish_far, server_of
from tests.remote.cards import serving_card
from tests.remote.servers import Changing, Json, card_03, card_10, offering, raw_server

KEY, OTHER = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
NAMED = {"name": "Straße \U0001f600", "version": "1"}


def public(*keys: Any) -> list[Json]:
    """Keys as an owner pins them."""
    return read_keys({"keys": [key.as_dict(private=False) for key in keys]})


def signed(card: Json, key: Any = KEY, alg: str = "ES256", payload: Json | None = None, **header: Any) -> Json:
    """A card with a signature over it, or over another payload."""
    body = rfc8785.dumps(payload or {name: card[name] for name in card if name != "signatures"})
    registry = CardRegistry(algorithms=[alg])
    compact = jws.serialize_compact({"alg": alg, **header}, body, key, registry=registry)
    protected, _, signature = compact.split(".")
    return {**card, "signatures": [*card.get("signatures", []), {"protected": protected, "signature": signature}]}


def test_a_card_verifies_by_a_pinned_key(subtests: pytest.Subtests) -> None:
    rsa = RSAKey.generate_key(2048)
    keys = {"ES256": KEY, "ES384": ECKey.generate_key("P-384"), "RS256": rsa, "PS256": rsa}
    keys["EdDSA"] = OKPKey.generate_key("Ed25519")
    for shape, (alg, key) in itertools.product((card_10(), card_03()), keys.items()):
        with subtests.test(alg=alg, members=[*shape]):
            card = {**shape, **NAMED, "capabilities": {"extensions": [{"uri": "urn:x", "params": {"n": 0.5}}]}}
            shown = signed(card, key, alg, typ="JOSE", kid="k", x_unknown="member", x5c=["A" * 2000])
            check_signature(shown, public(OTHER, key))
            check_signature(dict(reversed(shown.items())), public(key))
            check_signature({**shown, "signatures": [{"protected": 5}, *shown["signatures"]]}, public(key))
            with pytest.raises(BadSignature):
                check_signature(shown, public(OTHER))
            with pytest.raises(BadSignature):
                check_signature({**shown, "name": "an impostor"}, public(key))


def test_a_card_that_the_official_server_signs_and_shows_verifies() -> None:
    extension = AgentExtension(uri="urn:x", description="")
    extension.params.update({"count": 3, "share": 0.25})
    card = AgentCard(
        **NAMED,
        description="Lives elsewhere.",
        supported_interfaces=[
            AgentInterface(url="https://far.example/a", protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url="https://far.example/a", protocol_binding="JSONRPC", protocol_version="0.3"),
        ],
        capabilities=AgentCapabilities(streaming=False, extensions=[extension]),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="talk", name="Talk", description="Talks.", tags=["talk"])],
    )
    card.security_schemes["b"].http_auth_security_scheme.scheme = "bearer"
    header: Any = {"kid": "k", "alg": "ES256", "jku": None, "typ": "JOSE"}
    shown = json.loads(json.dumps(agent_card_to_dict(create_agent_card_signer(_pyjwk(), header)(card))))
    assert shown["url"] == "https://far.example/a"  # for readers of 0.3, and not signed
    check_signature(shown, public(KEY))
    before = read_card("https://far.example/c", shown)
    shown["url"] = "https://evil.example/"
    check_signature(shown, public(KEY))
    assert read_card("https://far.example/c", shown).content == before.content
    shown["supportedInterfaces"][0]["url"] = "https://evil.example/"
    with pytest.raises(BadSignature):
        check_signature(shown, public(KEY))


def _pyjwk() -> PyJWK:
    return PyJWK({**KEY.as_dict(private=True), "alg": "ES256"})


def test_a_card_of_0_3_verifies_without_the_defaults_that_its_sdk_leaves_out() -> None:
    card = {**card_03(), "url": "https://far.example/a", "iconUrl": "", "skills": []}
    payload = {name: card[name] for name in ("name", "version", "url", "capabilities")}
    check_signature(signed(card, payload=payload), public(KEY))
    with pytest.raises(BadSignature):
        check_signature(signed({**card, "protocolVersion": "1.0"}, payload=payload), public(KEY))


def _b64(value: Any) -> str:
    return (
        urlsafe_b64encode(value if isinstance(value, bytes) else json.dumps(value).encode()).rstrip(b"=").decode()
    )


def _hmac(card: Json) -> Json:
    """Signed with the text of the public key as a secret."""
    secret = OctKey.import_key(json.dumps(public(KEY)[0]))
    return signed(card, secret, "HS256")


def _critical(card: Json) -> list[Json]:
    """Signed with a header that says: refuse this unless you understand `x`."""

    class Lax(CardRegistry):
        def check_header(self, header: Any) -> None:
            pass

    header = {"alg": "ES256", "crit": ["x"], "x": 1}
    compact = jws.serialize_compact(header, rfc8785.dumps(card), KEY, registry=Lax(algorithms=["ES256"]))
    protected, _, signature = compact.split(".")
    return [{"protected": protected, "signature": signature}]


FORGED: dict[str, Any] = {
    "none": lambda card: [],
    "no list": lambda card: {"protected": "e30"},
    "no objects": lambda card: ["e30", None, 5],
    "no text": lambda card: [{"protected": {}, "signature": []}],
    "alg none": lambda card: [{"protected": _b64({"alg": "none"}), "signature": ""}],
    "a secret": lambda card: _hmac(card)["signatures"],
    "of another card": lambda card: signed({**card, "name": "x"})["signatures"],
    "a key of its own": lambda card: signed(card, OTHER, jwk=OTHER.as_dict(private=False))["signatures"],
    "critical": lambda card: _critical(card),
    "dots": lambda card: [{"protected": "a.b", "signature": "c.d"}],
    "deep": lambda card: [{"protected": _b64(b"[" * 9000), "signature": "AA"}],
    "surrogate": lambda card: [{"protected": "\ud800", "signature": "\x00"}],
    "too many": lambda card: [{}] * 8 + signed(card)["signatures"],
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_what_is_not_signed_by_a_pinned_key_is_refused(forge: Any, subtests: pytest.Subtests) -> None:
    card = card_10()
    for forged in ({**card, "signatures": forge(card)}, card):
        with subtests.test(is_signed="signatures" in forged), pytest.raises(BadSignature):
            check_signature(forged, public(KEY))


BAD_KEYS: dict[str, Any] = {
    "private": KEY.as_dict(private=True),
    "a secret": {"kty": "oct", "k": "AAAA"},
    "weak": {"kty": "RSA", "n": _b64(b"\xff" * 128), "e": "AQAB"},
    "weak, and padded": {"kty": "RSA", "n": _b64(bytes(200) + b"\xff" * 128), "e": "AQAB"},
    "slow": {"kty": "RSA", "n": _b64(b"\xff" * 4096), "e": "AQAB"},
    "a large exponent": {"kty": "RSA", "n": _b64(b"\xff" * 256), "e": _b64(b"\xff" * 256)},
    "another curve": ECKey.generate_key("secp256k1").as_dict(private=False),
    "not on the curve": {**KEY.as_dict(private=False), "x": "AA"},
    "half": {"kty": "EC", "crv": "P-256"},
    "numbers": {"kty": "EC", "crv": 5, "x": 1, "y": 2},
    "no kind": {},
    "an odd kind": {"kty": ["EC"]},
    "empty set": {"keys": []},
    "odd set": {"keys": "x"},
    "many": {"keys": [KEY.as_dict(private=False)] * 9},
}


@pytest.mark.parametrize("given", BAD_KEYS.values(), ids=BAD_KEYS)
def test_what_is_no_public_key_is_refused(given: Any) -> None:
    with pytest.raises(BadKey):
        read_keys(given)
    with pytest.raises(BadKey):
        read_keys_text(json.dumps(given))


def test_of_a_key_only_what_matters_is_kept() -> None:
    given = {**KEY.as_dict(private=False), "kid": "mine", "use": "enc", "x5u": "https://evil.example/"}
    [key] = read_keys(given)
    assert key == {name: given[name] for name in ("kty", "crv", "x", "y", "kid")}
    assert read_keys_text(" \n") == []


# While it is asked.


@pytest.mark.parametrize(("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")])
async def test_nothing_is_asked_by_a_card_that_does_not_verify(caller: Caller, binding: str, version: str) -> None:
    card = offering("/one", binding, version)
    changing = Changing(signed(card))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json", keys=public(KEY))
        assert (await caller.ask(agent, "hello")).text == "fine"
        asked, changing.card = len(changing.paths), signed(card, OTHER)
        caller.doubt_cards()
        assert (await caller.ask(agent, "hello")).reason == "not_delivered"
        assert len(changing.paths) == asked
        server = await server_of(agent)
        assert server.card_refusal == NOT_BY_PINNED
        assert server.last_failure == server.card_refusal
        assert not await db_call(is_online)(agent.session_id)
        changing.card = signed(card)
        await eventually(lambda: db_call(is_online)(agent.session_id), "half-open")
        assert (await caller.ask(agent, "hello")).text == "fine"
        assert (await server_of(agent)).card_refusal == ""


async def test_an_unsigned_card_stops_asks_while_a_changed_one_waits(caller: Caller) -> None:
    changed = offering("/one", description="Better.")
    changing = Changing(signed(offering("/one")))
    async with raw_server(changing.answer) as far:
        agent = await caller.publish(f"{far.url}/card.json", keys=public(KEY))
        for card, reason in ((signed(changed), ""), (changed, "not_delivered")):
            changing.card = card
            caller.doubt_cards()
            assert (await caller.ask(agent, "hello")).reason == reason
        assert changing.paths == ["/one"]
        server = await server_of(agent)
        assert server.card_refusal == "the card is not signed: sign it, or remove the pinned keys"
        waiting = await db_call(find_changed_card)(server)
        assert waiting is not None
        assert not waiting.is_asked
        changing.card = signed(changed)
        await eventually(lambda: db_call(is_online)(agent.session_id), "half-open")
        assert (await caller.ask(agent, "hello")).text == "fine"
        server = await server_of(agent)
        assert (server.card_changed_at is None, server.card_refusal) == (False, "")


# By REST and on the desk.


def test_an_owner_pins_keys_by_rest(alice: Person) -> None:
    client, jwk = api(alice.session), KEY.as_dict(private=False)
    with serving_card(_signed_below()) as url:
        made = publish_far(alice, url, cardKeys=jwk)
        assert made.status_code == 201, made.content
        path = f"/api/v1/agents/{made.json()['id']}"
        assert made.json()["remote"]["cardKeys"] == [KEY.thumbprint()]

        def change(**remote: Any) -> Any:
            return client.patch(path, {"remote": remote}, format="json")

        refused = change(cardKeys=OTHER.as_dict(private=False))
        assert refused.status_code == 400
        assert "no signature of the card" in refused.json()["message"]
        assert change(cardKeys=KEY.as_dict(private=True)).status_code == 400
        assert change(cardKeys={"keys": [OTHER.as_dict(private=False), jwk]}).status_code == 200
        assert len(change(cardUrl=url).json()["remote"]["cardKeys"]) == 2
        assert change(cardKeys=None).json()["remote"]["cardKeys"] == []
        looked = {"cardUrl": url, "cardKeys": OTHER.as_dict(private=False)}
        assert client.post("/api/v1/agents/cards", looked, format="json").status_code == 400


def test_an_owner_pins_keys_on_the_desk(alice: Person, subtests: pytest.Subtests) -> None:
    client = browser(alice.session)
    with serving_card(_signed_below()) as url:
        made = publish_far(alice, url).json()
        path = f"/desk/agents/{made['id']}/remote"
        fields = {"card_url": url, "auth": "keep", "auth_scheme": "", "credentials": "", "action": "save"}
        for wrong, said in (("{", "public JWK"), (json.dumps(OTHER.as_dict(private=False)), "no signature")):
            with subtests.test(keys=wrong):
                answer = client.post(path, {**fields, "card_keys": wrong})
                assert answer.status_code == 400
                assert said in answer.content.decode()
        right = json.dumps(KEY.as_dict(private=False))
        assert client.post(path, {**fields, "card_keys": right}).status_code == 302
        [pinned] = RemoteServer.objects.get().card_keys
        assert pinned["x"] in client.get(path).content.decode()
        RemoteServer.objects.update(card_refusal="the card is not signed: sign it")
        page = client.get(path).content.decode()
        assert "Nothing is asked: the card is not signed" in page
        assert ">not asked<" in page
        assert client.post(path, {**fields, "card_keys": ""}).status_code == 302
        assert RemoteServer.objects.get().card_keys == []


def _signed_below() -> Json:
    """A signed card whose interface is wherever it is served."""
    return signed(offering("/one"))
