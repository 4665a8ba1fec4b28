"""One card for readers of every dialect: A2A 1.0, 0.3 and the hub's own."""

from a2a_bridge.cards.parts import BEARER, Json, Today, common, info, interfaces, url_of
from agents.models import Agent


def merged_card(agent: Agent, today: Today, public_url: str) -> Json:
    """The members of all dialects side by side.

    The security scheme keeps `type` beside the 1.0 form: that is how the JavaScript client of 0.3 knows it. Push
    notifications and the extended card are of 1.0 alone, so a card that others read too does not promise them.
    """
    url = url_of(agent, public_url)
    return {
        **common(agent, public_url),
        "supportedInterfaces": interfaces(agent, public_url),
        "url": url,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "capabilities": {"streaming": True, "pushNotifications": False, "extendedAgentCard": False},
        "securitySchemes": {"bearerSession": {"type": "http", **BEARER, "httpAuthSecurityScheme": BEARER}},
        "security": [{"bearerSession": []}],
        "securityRequirements": [{"schemes": {"bearerSession": {"list": []}}}],
        "_clawborrator": info(agent, today),
    }
