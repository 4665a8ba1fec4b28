"""A live hub with something of everything in it, and real values for the names in its paths."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.callers import bearer, question, send
from tests.hub_process import HubProcess
from tests.peer import Peer

WITHIN_S = 30
DESTRUCTIVE = {"patchOneAgent", "deleteOneAgent"}


@dataclass
class Seeded:
    """The hub of `DEMO`, its owner's tokens, and what `{names}` in paths stand for."""

    hub: HubProcess
    tokens: dict[str, str]
    names: dict[str, Any] = field(default_factory=dict)
    spare_agents: dict[str, int] = field(default_factory=dict)
    http: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.http.trust_env = False

    def call(self, method: str, path: str, **options: Any) -> Any:
        """One call as the owner; the answer's JSON."""
        url, headers = f"{self.hub.url}/api/v1{path}", bearer(self.tokens["bearer"])
        answer = self.http.request(method, url, headers=headers, timeout=WITHIN_S, **options)
        assert answer.ok, answer.text
        return answer.json()

    def headers(self, operation: Any) -> dict[str, str]:
        """The credential an operation takes; one that ends its credential gets one of its own."""
        definition = operation.definition.raw
        if definition["operationId"] == "postLogout":
            return bearer(self.tokens["spent"])
        schemes = [name for one in definition.get("security", ()) for name in one]
        return bearer(self.tokens[schemes[0]]) if schemes else {}

    def known(self, operation: Any) -> dict[str, Any]:
        """Values for the operation's path that lead to what there is."""
        name = operation.definition.raw["operationId"]
        values = self.names | ({"agent_id": self.spare_agents[name]} if name in DESTRUCTIVE else {})
        return {one: value for one, value in values.items() if f"{{{one}}}" in operation.path}


def seed(hub: HubProcess) -> Seeded:
    """The demo's owner with a question answered, spare agents, and credentials to spend."""
    bearer_token = hub.mint("demo", "session")
    tokens = {"bearer": bearer_token, "channelToken": hub.mint("demo", "channel")}
    seeded = Seeded(hub, tokens | {"spent": hub.mint_again("demo", "session")})
    tokens["bearer"] = seeded.tokens["bearer"] = bearer_token
    agent = seeded.call("GET", "/agents/by-handle/demo/echo")
    asyncio.run(send(hub.url, "demo/echo", "hello", bearer_token))
    for name in sorted(DESTRUCTIVE):
        body = {"sessionId": asyncio.run(_register(seeded)), "name": name, "slug": f"spare-{len(name)}"}
        seeded.spare_agents[name] = seeded.call("POST", "/agents", json=body)["id"]
    sessions = seeded.call("GET", "/auth-sessions")["items"]
    seeded.names = {
        "owner": "demo",
        "slug": "echo",
        "agent_id": agent["id"],
        "public_id": agent["sessionId"],
        "token_id": seeded.call("POST", "/tokens/channel", json={"name": "spare"})["id"],
        "prefix": next(one["id"] for one in sessions if not one["isCurrent"])[:12],
    }
    return seeded


def ask_body(text: str) -> dict[str, Any]:
    """A question whose answer is as described."""
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": question(text)}


async def _register(seeded: Seeded) -> str:
    async with Peer(seeded.hub.url, seeded.tokens["channelToken"]) as peer:
        assert peer.session_id is not None
        return peer.session_id
