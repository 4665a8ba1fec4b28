"""The bridge for the hub's public description: JSON-RPC by POST, other bindings, cards, catalogs and keys."""

from typing import Any, Literal, NotRequired, TypedDict

from a2a_bridge.surface.addresses import OPERATIONS as HTTP_JSON
from a2a_bridge.surface.catalog import CATALOG, Catalog
from a2a_bridge.surface.documents import describe_document
from a2a_bridge.wire.dialects.dialect import AGENT, Id, RpcFault
from a2a_bridge.wire.versions import DIALECTS
from kit.describe import (
    CALLER,
    COMMON_FAILURES,
    DescribedAnswer,
    DescribedOperation,
    Either,
    Parameter,
    describe_failures,
)


class RpcFailure(TypedDict):
    """The answer to a request that did not get as far as its method."""

    jsonrpc: Literal["2.0"]
    id: Id
    error: RpcFault


class NoSuchAgent(TypedDict):
    """A JSON-RPC error; for an address that no agent can have, the native API's `{error, message}`."""

    error: RpcFault | str
    message: NotRequired[str]
    jsonrpc: NotRequired[Literal["2.0"]]
    id: NotRequired[Id]


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


VERSION = Parameter(
    name="A2A-Version",
    place="header",
    shape=Literal["1.0", "0.3"],
    text="`1.0`: A2A 1.0. None or `0.3`: A2A 0.3 for methods with a slash, the hub's own dialect for the others.",
)
CARD_VERSION = Parameter(name="A2A-Version", place="header", text="`1.0`: a strict card of A2A 1.0, signed.")

GIVEN = Parameter(
    name="given",
    place="path",
    text="The address below the base that a client was given: `v1`, `core`, or the path of a card.",
)


ASK = DescribedOperation(
    method="post",
    path=AGENT,
    name="ask",
    summary="Ask an agent: one JSON-RPC request, one answer or a stream of events.",
    text="The dialect follows from A2A-Version and the method's name. Methods, parameters and codes are in the"
    " reference, /demos/a2a/, and as text in /llms.txt. Errors are JSON-RPC's.",
    tag="a2a",
    security=CALLER,
    request=Either([one.requests for one in DIALECTS]),
    parameters=[VERSION],
    adds_errors=False,
    answers={
        200: DescribedAnswer(
            shape=Either([shape for one in DIALECTS for shape in one.description.answers]),
            streams=Either([*(shape for one in DIALECTS for shape in one.description.events), RpcFailure]),
            text="What the method gives, or an error; some methods answer with a stream.",
        ),
        404: DescribedAnswer(shape=NoSuchAgent, text="There is no such agent."),
        **describe_failures(RpcFailure, COMMON_FAILURES),
    },
)


def _card(path: str, name: str, *parameters: Parameter) -> DescribedOperation:
    answer = DescribedAnswer(shape=dict[str, Any], text="The card, of A2A's shape.")
    return describe_document(
        AGENT + path, name, "The AgentCard of a published agent.", answer, parameters=parameters
    )


def _catalog(path: str, name: str, media_type: str) -> DescribedOperation:
    bounds = (
        Parameter(name="from", text="The handle a part begins with."),
        Parameter(name="to", text="And ends before."),
    )
    summary = "The catalog of published, public agents; of further catalogs, when there are very many."
    answer = DescribedAnswer(shape=Catalog, media_types=(media_type,))
    return describe_document(path, name, summary, answer, parameters=bounds)


OPERATIONS = (
    ASK,
    _card("/agent-card.json", "getCard"),
    _card("/.well-known/agent-card.json", "getWellKnownCard", CARD_VERSION),
    _card("/.well-known/agent.json", "getLegacyCard", CARD_VERSION),
    _card("", "getBase", CARD_VERSION),
    _card("/core", "getCoreBase", CARD_VERSION),
    _card("/v1", "getStrictBase"),
    _card("/{given}/.well-known/agent-card.json", "getCardBelow", GIVEN),
    describe_document(
        f"{AGENT}/usage.md",
        "getUsageSheet",
        "How another agent asks this one, as Markdown.",
        DescribedAnswer(shape=str, text="The sheet.", media_types=("text/markdown",)),
    ),
    _catalog("/.well-known/ai-catalog.json", "getAiCatalog", CATALOG),
    _catalog("/.well-known/ard.json", "getArd", "application/json"),
    DescribedOperation(
        method="get",
        path="/.well-known/jwks.json",
        name="getJwks",
        summary="The public keys that verify what this hub signed.",
        tag="a2a",
        security=(),
        answers={200: DescribedAnswer(shape=PublicKeys, media_types=("application/jwk-set+json",))},
    ),
    *HTTP_JSON,
)
