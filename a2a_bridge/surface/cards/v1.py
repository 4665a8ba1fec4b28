"""The card of A2A 1.0 and nothing else: its schema is closed, so what is the hub's own is an extension's params.

Nothing in it is empty or a default. Who verifies a signature may drop such members first: section 8.4.1 of the
specification keeps some of them, the official SDKs keep none. A card without any has one canonical form.
"""

import rfc8785

from a2a_bridge.surface.cards.parts import BEARER, Json, UsageToday, common, info, interfaces, read_today, url_of
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.versions import EXTENSION_PATH
from accounts.signing import NoKey, sign
from agents.core.admission import CallerSpending
from agents.core.directory import find_caller_spending
from agents.models import Agent

EXTENSION_TEXT = "What this hub knows of the agent: owner, budget, isolation."
JWKS_PATH = "/.well-known/jwks.json"
ROLE = "ask"  # what a token is needed for; an empty list would be dropped by some who verify


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
    """The extended card of a published agent as it stands now for a caller, signed; None when there is no such
    agent any more.

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
    extension = {"uri": public_url + EXTENSION_PATH, "description": EXTENSION_TEXT, "params": params}
    return {
        **common(agent, public_url),
        "supportedInterfaces": interfaces(V1, url_of(agent, public_url)),
        "capabilities": {
            "streaming": True,
            "pushNotifications": True,
            "extendedAgentCard": True,
            "extensions": [extension],
        },
        "securitySchemes": {"bearerSession": {"httpAuthSecurityScheme": BEARER}},
        "securityRequirements": [{"schemes": {"bearerSession": {"list": [ROLE]}}}],
    }
