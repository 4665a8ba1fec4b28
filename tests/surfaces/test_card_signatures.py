"""A strict card verifies, in whichever form its reader takes it: as served, or as the official SDK holds it."""

import base64
import json
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.types import AgentCard
from a2a.utils._jcs import canonicalize
from google.protobuf.json_format import MessageToDict, ParseDict
from joserfc import jws
from joserfc.errors import BadSignatureError
from joserfc.jwk import KeySet

from lab.agents import Echo, online
from lab.callers import TLS, rpc_path
from lab.hub_process import HubProcess

Json = dict[str, Any]
FIELDS = {
    "name": "Straße \U0001f600 \u20ac \ufb01",
    "description": 'line\nbreak "quotes" \\ \x7f \x1b',
    "suggestedPrompts": ["日本語?", "</script>"],
}


async def fetched(hub: HubProcess, handle: str) -> tuple[Json, Json]:
    """A strict card, and the keys its signature points to."""
    async with httpx.AsyncClient(trust_env=False, verify=TLS) as client:
        answer = await client.get(f"{hub.url}{rpc_path(handle)}/v1/.well-known/agent-card.json")
        [signature] = answer.json()["signatures"]
        protected = json.loads(base64.urlsafe_b64decode(signature["protected"] + "=="))
        assert (protected["alg"], protected["typ"]) == ("ES256", "JOSE")
        assert protected["jku"] == f"{hub.url}/.well-known/jwks.json"
        keys = await client.get(protected["jku"])
    assert protected["kid"] in [key["kid"] for key in keys.json()["keys"]]
    return answer.json(), keys.json()


def check(payload: str, signature: Json, keys: Json) -> None:
    """Fail unless a signature is that of a payload."""
    encoded = base64.urlsafe_b64encode(payload.encode()).rstrip(b"=").decode()
    compact = f"{signature['protected']}.{encoded}.{signature['signature']}"
    jws.deserialize_compact(compact, KeySet.import_key_set(keys), algorithms=["ES256"])


def without_empties(value: Any) -> Any:
    """A card as the official SDKs reduce it before they verify it."""
    if isinstance(value, dict):
        kept = {name: left for name, one in value.items() if (left := without_empties(one)) is not None}
        return kept or None
    if isinstance(value, list):
        return [left for one in value if (left := without_empties(one)) is not None] or None
    return None if value == "" else value


async def test_a_card_verifies_as_served_and_as_the_sdk_holds_it(hub: HubProcess) -> None:
    async with online(hub, Echo, agent=FIELDS) as agent:
        card, keys = await fetched(hub, agent.handle)
    [signature] = card.pop("signatures")
    held = MessageToDict(ParseDict(card, AgentCard(), ignore_unknown_fields=False))
    for form in (card, held, without_empties(held)):
        check(canonicalize(form), signature, keys)
    with pytest.raises(BadSignatureError):
        check(canonicalize({**card, "name": "an impostor"}), signature, keys)


async def test_the_sdks_own_verifier_accepts_a_card(hub: HubProcess) -> None:
    jwt = pytest.importorskip("jwt", reason="the SDK verifies with PyJWT: a2a-sdk[signing]")
    signing = pytest.importorskip("a2a.utils.signing")
    async with online(hub, Echo, agent=FIELDS) as agent, httpx.AsyncClient(trust_env=False, verify=TLS) as client:
        _, keys = await fetched(hub, agent.handle)
        known = {key["kid"]: jwt.PyJWK(key) for key in keys["keys"]}
        verify = signing.create_signature_verifier(lambda kid, jku: known[kid], ["ES256"])
        path = f"{rpc_path(agent.handle)}/v1/.well-known/agent-card.json"
        card = await A2ACardResolver(client, hub.url, path).get_agent_card(signature_verifier=verify)
        card.name = "an impostor"
        with pytest.raises(signing.InvalidSignaturesError):
            verify(card)
