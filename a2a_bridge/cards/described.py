"""Cards, catalogs and keys for the hub's public description."""

from typing import Any, Literal, TypedDict

from a2a_bridge.catalog import CATALOG, Catalog
from kit.describe import Answer, Operation, Parameter

AGENT = "/api/a2a/v1/agents/{owner}/{slug}"
SAME = Answer(text="The reader's copy holds (`If-None-Match`, `If-Modified-Since`).")
VERSION = Parameter(name="A2A-Version", place="header", text="`1.0`: a strict card of A2A 1.0, signed.")


class PublicKey(TypedDict):
    """A public key as a JWK."""

    kty: Literal["EC"]
    crv: Literal["P-256"]
    x: str
    y: str
    kid: str
    alg: Literal["ES256"]
    use: Literal["sig"]


class PublicKeys(TypedDict):
    """A JWK Set: the key that signs first, then those retired within 30 days."""

    keys: list[PublicKey]


def _card(path: str, name: str, *parameters: Parameter) -> Operation:
    return Operation(
        method="get",
        path=AGENT + path,
        name=name,
        summary="The AgentCard of a published agent.",
        tag="a2a",
        security=(),
        parameters=parameters,
        answers={200: Answer(shape=dict[str, Any], text="The card, of A2A's shape."), 304: SAME},
    )


def _catalog(path: str, name: str, media_type: str) -> Operation:
    bounds = (
        Parameter(name="from", text="The handle a part begins with."),
        Parameter(name="to", text="And ends before."),
    )
    return Operation(
        method="get",
        path=path,
        name=name,
        summary="The catalog of published, public agents; of further catalogs, when there are very many.",
        tag="a2a",
        security=(),
        parameters=bounds,
        answers={200: Answer(shape=Catalog, media_types=(media_type,)), 304: SAME},
    )


OPERATIONS = (
    _card("/agent-card.json", "getCard"),
    _card("/.well-known/agent-card.json", "getWellKnownCard", VERSION),
    _card("/.well-known/agent.json", "getLegacyCard", VERSION),
    _card("/v1/.well-known/agent-card.json", "getStrictCard"),
    Operation(
        method="get",
        path=f"{AGENT}/usage.md",
        name="getUsageSheet",
        summary="How another agent asks this one, as Markdown.",
        tag="a2a",
        security=(),
        answers={200: Answer(shape=str, text="The sheet.", media_types=("text/markdown",)), 304: SAME},
    ),
    _catalog("/.well-known/ai-catalog.json", "getAiCatalog", CATALOG),
    _catalog("/.well-known/ard.json", "getArd", "application/json"),
    Operation(
        method="get",
        path="/.well-known/jwks.json",
        name="getJwks",
        summary="The public keys that verify what this hub signed.",
        tag="a2a",
        security=(),
        answers={200: Answer(shape=PublicKeys, media_types=("application/jwk-set+json",))},
    ),
)
