"""The AgentCard of a published agent, in two renderings of the same facts (docs/adr/0041).

`merged_card` is read by clients of every dialect. `strict_card` is a card of A2A 1.0 and nothing else: its schema
is closed, so what is the hub's own is in the parameters of an extension; it is signed, and has an extended form.

A strict card has no empty and no default member. Programs that verify a signature may drop such members first:
section 8.4.1 of the specification keeps some of them, the official SDKs keep none. A card without any has one
canonical form.
"""

from dataclasses import dataclass
from typing import Any

import rfc8785

from a2a_bridge.wire.dialects.dialect import Dialect
from a2a_bridge.wire.dialects.v03 import V03
from a2a_bridge.wire.dialects.v1 import CORE, V1
from a2a_bridge.wire.versions import INFO_PATH, RATING_PATH
from accounts.signing import NoKey, sign
from agents.core.admission import CallerSpending
from agents.core.directory import find_caller_spending, queries_today
from agents.models import Agent
from agents.models.agent import HUB_MODES
from agents.models.session import is_online

Json = dict[str, Any]

ISOLATED_NOTE = (
    "this agent answers from its own context only; cross-session routing tools (route_to_peer / probe_peers /"
    " list_peers) are disabled while it's working on your request"
)
COMPOSABLE_NOTE = "this agent may ask other sessions while answering you, with your access, never its owner's"
ASK_DESCRIPTION = "Send a natural-language question; receive a textual answer."
BEARER = {
    "scheme": "Bearer",
    "bearerFormat": "cw_sess_<32hex>",
    "description": "clawborrator session token from /api/v1/auth/oauth/token",
}
MODES = [*HUB_MODES]
INFO_TEXT = "What this hub knows of the agent: owner, budget, isolation."
RATING_TEXT = "RateTask: callers rate answers by a thumb up or down, with a note for the agent's owner."
JWKS_PATH = "/.well-known/jwks.json"
ROLE = "ask"  # what a token is needed for; an empty list would be dropped by some who verify


@dataclass(frozen=True, slots=True)
class UsageToday:
    """The values that change by the minute: accepted asks of this UTC day, and whether the agent is connected."""

    queries: int = 0
    online: bool = False


def read_today(agent: Agent) -> UsageToday:
    """The agent's usage and connection as they are now."""
    return UsageToday(queries_today(agent), is_online(agent.session_id))


def url_of(agent: Agent, public_url: str) -> str:
    """The agent's address in every dialect and binding; built from PUBLIC_URL alone.

    The URL has no slash at the end: clients of the HTTP+JSON binding put `/message:send` after it.
    """
    return f"{public_url}/api/a2a/v1/agents/{agent.handle}"


def common(agent: Agent, public_url: str) -> Json:
    """The members that A2A 0.3 and 1.0 share. No member is empty: signatures rely on that (`strict`)."""
    return {
        "name": agent.name,
        "description": agent.description or agent.tagline or agent.name,
        "version": "1",
        "documentationUrl": f"{url_of(agent, public_url)}/usage.md",
        "provider": {"organization": "clawborrator hub_v1", "url": public_url},
        "defaultInputModes": agent.input_modes or MODES,
        "defaultOutputModes": agent.output_modes or MODES,
        "skills": [_skill(agent, skill) for skill in agent.skills] or [_ask(agent)],
    }


def interfaces(dialect: Dialect, url: str) -> list[Json]:
    """The bindings of a dialect at an address of the agent, the best first."""
    return [
        {"url": url, "protocolBinding": binding, "protocolVersion": dialect.name} for binding in dialect.bindings
    ]


def rating_extension(public_url: str) -> Json:
    """The declaration of the extension by which callers rate answers, of A2A 1.0 and 0.3."""
    return {"uri": public_url + RATING_PATH, "description": RATING_TEXT}


def info(agent: Agent, today: UsageToday) -> Json:
    """The values that A2A has no member for."""
    return {
        "handle": agent.handle,
        "ownerLogin": agent.handle.partition("/")[0],
        "queriesToday": today.queries,
        "dailyBudget": agent.daily_budget,
        "online": today.online,
        "isolated": agent.isolated,
        "isolationNote": ISOLATED_NOTE if agent.isolated else COMPOSABLE_NOTE,
    }


def merged_card(agent: Agent, today: UsageToday, public_url: str) -> Json:
    """The members of all dialects side by side.

    The security scheme keeps `type` beside the 1.0 form: that is how the JavaScript client of 0.3 knows it. Push
    notifications and the extended card are of 1.0 alone. Clients of 0.3 read this card too, so it denies both, and
    lists an address of 1.0 that has neither (docs/adr/0041).
    """
    url = url_of(agent, public_url)
    return {
        **common(agent, public_url),
        "supportedInterfaces": [*interfaces(V1, f"{url}/{CORE}"), *interfaces(V03, url)],
        "url": url,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "extendedAgentCard": False,
            "extensions": [rating_extension(public_url)],
        },
        "securitySchemes": {"bearerSession": {"type": "http", **BEARER, "httpAuthSecurityScheme": BEARER}},
        "security": [{"bearerSession": []}],
        "securityRequirements": [{"schemes": {"bearerSession": {"list": []}}}],
        "_clawborrator": info(agent, today),
    }


def _skill(agent: Agent, skill: Json) -> Json:
    """A skill as its owner described it; what they left out, as readers need it."""
    shown: Json = {
        "id": skill["id"],
        "name": skill["name"],
        "description": skill.get("description") or skill["name"],
        "tags": list(dict.fromkeys([*(skill.get("tags") or ()), *agent.tags])) or ["chat"],
        "inputModes": skill.get("inputModes") or agent.input_modes or MODES,
        "outputModes": skill.get("outputModes") or agent.output_modes or MODES,
    }
    return shown | {"examples": skill["examples"]} if skill.get("examples") else shown


def _ask(agent: Agent) -> Json:
    skill: Json = {
        "id": "ask",
        "name": "ask",
        "description": ASK_DESCRIPTION,
        "tags": agent.tags or ["chat"],
        "inputModes": agent.input_modes or MODES,
        "outputModes": agent.output_modes or MODES,
    }
    examples = [prompt for prompt in agent.suggested_prompts if prompt]
    return {**skill, "examples": examples} if examples else skill


def strict_card(agent: Agent, today: UsageToday, public_url: str) -> Json:
    """A public card of A2A 1.0, unsigned."""
    return _card(agent, info(agent, today), public_url)


def extended_card(
    agent: Agent,
    today: UsageToday,
    public_url: str,
    *,
    reply_wait_s: float,
    caller: CallerSpending | None = None,
) -> Json:
    """The card for an authenticated caller, unsigned: with what is left today and how long the hub waits for a
    reply.

    `caller`: what the caller spent of a budget of their own, if they have one.
    `replyWaitS`: seconds for those who wait for the answer; `waitS`: for those who stream, or come back for it.
    """
    more: Json = {
        "budgetLeft": max(0, agent.daily_budget - today.queries),
        "concurrencyCap": agent.concurrency_cap,
        "replyWaitS": round(reply_wait_s),
        "waitS": agent.wait_s or round(reply_wait_s),
        "agentStyle": agent.agent_style,
    }
    if caller is not None and caller.budget is not None:
        more |= {"callerBudget": caller.budget, "callerBudgetLeft": caller.left}
    return _card(agent, {**info(agent, today), **more}, public_url)


def find_extended_card(
    agent_id: int, caller_id: int | None, public_url: str, *, reply_wait_s: float
) -> Json | None:
    """The extended card of a published agent as it stands now for a caller, signed; None when there is no
    such agent any more.

    Reads the database. The calling function checks whether the caller may see the agent.
    """
    agent: Agent | None = Agent.objects.published().filter(pk=agent_id).first()
    if agent is None:
        return None
    caller = find_caller_spending(agent, caller_id)
    card = extended_card(agent, read_today(agent), public_url, reply_wait_s=reply_wait_s, caller=caller)
    return signed(card, public_url)


def signed(card: Json, public_url: str) -> Json:
    """A strict card with the hub's signature (section 8.4); as it is, when the hub's key cannot be read."""
    try:
        compact = sign(rfc8785.dumps(card), {"typ": "JOSE", "jku": public_url + JWKS_PATH})
    except NoKey:
        return card
    protected, _, signature = compact.split(".")
    return {**card, "signatures": [{"protected": protected, "signature": signature}]}


def _card(agent: Agent, params: Json, public_url: str) -> Json:
    agent_info = {"uri": public_url + INFO_PATH, "description": INFO_TEXT, "params": params}
    return {
        **common(agent, public_url),
        "supportedInterfaces": interfaces(V1, url_of(agent, public_url)),
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extendedAgentCard": True,
            "extensions": [agent_info, rating_extension(public_url)],
        },
        "securitySchemes": {"bearerSession": {"httpAuthSecurityScheme": BEARER}},
        "securityRequirements": [{"schemes": {"bearerSession": {"list": [ROLE]}}}],
    }
