"""Every surface of the hub, with a request that its tokens open, and no others."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab.callers import bearer, envelope
from tests.tenancy.web import Answer, Web

SESSIONS = frozenset({"olga", "root"})
UNLIMITED = SESSIONS | {"olga app"}
READERS = UNLIMITED | {"olga reads", "olga jwt reads", "access", "group app"}
ASKERS = UNLIMITED | {"olga asks", "access"}  # a group never asks
OF_MAIN = ASKERS | {"olga one agent"}
PUBLISHERS = UNLIMITED | {"olga publishes", "group app"}
ADMINISTERING = frozenset({"root administers", "olga administers"})  # the second is of a user who may not
LISTERS = READERS | OF_MAIN
CHANNELS = frozenset({"olga channel", "root channel", "group channel"})
KEYS = frozenset({"agnt query", "agnt full"})
ACCEPT = {"Accept": "application/json, text/event-stream"}
MESSAGE = {"messages": [{"role": "user", "content": "hi"}]}
ABSENT = "00000000-0000-4000-8000-000000000000"
HANDLE = "olga/pub-main"


@dataclass(frozen=True)
class SurfaceRequest:
    """A request that changes nothing, unless it asks. `opens`: the tokens, by name, that are not refused.

    `proof`: a text of an answer to a token that opens the surface, where refusals have no status of their own.
    """

    name: str
    path: str
    opens: frozenset[str]
    body: Any = None
    method: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    by_cookie: bool = False
    proof: str = ""

    def send(self, web: Web, token: str) -> Answer:
        """The answer to a caller with this token."""
        credential = {"Cookie": f"cw_session={token}"} if self.by_cookie else bearer(token) if token else {}
        method = self.method or ("GET" if self.body is None else "POST")
        body = {} if self.body is None else {"json": self.body}
        return web.request(method, self.path, headers={**self.headers, **credential}, **body)

    def is_open(self, answer: Answer) -> bool:
        """True if the surface did not refuse the token, whatever it then said of the request."""
        return answer.status_code not in (302, 401, 403) and self.proof in answer.text


def of_bridge(name: str, method: str, version: str) -> SurfaceRequest:
    """A read of a task that is not there, at an agent that is."""
    headers = {"A2A-Version": version} if version else {}
    body = envelope(method, {"id": "task-none"})
    return SurfaceRequest(name, f"/api/a2a/v1/agents/{HANDLE}", OF_MAIN, body, headers=headers)


def of_mcp(title: str, opens: frozenset[str], proof: str, method: str, **params: Any) -> SurfaceRequest:
    """One message to the MCP server."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return SurfaceRequest(title, "/mcp", opens, body, headers=ACCEPT, proof=proof)


V, GATEWAY_TASKS = "/api/v1", "/ap/v1/agent/tasks"
HOOK = {"sessionId": ABSENT, "kind": "tail", "type": "Notification", "payload": {}}
ACL = {"performative": "query-ref", "receiver": "nothing-here", "content": "hi", "reply-with": "r"}
PROBE = {"prompt": "hi", "peers": ["unknown/nothing"]}
ASK = {"handle": HANDLE, "message": "hi"}
SURFACES = [
    of_bridge("A2A of the hub", "GetTask", ""),
    of_bridge("A2A 0.3", "tasks/get", "0.3"),
    of_bridge("A2A 1.0", "GetTask", "1.0"),
    SurfaceRequest(
        "HTTP+JSON", f"/api/a2a/v1/agents/{HANDLE}/tasks/task-none", OF_MAIN, headers={"A2A-Version": "1.0"}
    ),
    of_mcp("MCP", LISTERS | KEYS, "result", "tools/list"),
    of_mcp("MCP, an ask", OF_MAIN, "echo: hi", "tools/call", name="ask_agent", arguments=ASK),
    of_mcp("MCP, a tool of keys", KEYS, "structuredContent", "tools/call", name="agnt.ping", arguments={}),
    SurfaceRequest("chat completions", "/v1/chat/completions", OF_MAIN, {"model": f"agent/{HANDLE}", **MESSAGE}),
    SurfaceRequest("responses", "/v1/responses", OF_MAIN, {"model": f"agent/{HANDLE}", "input": "hi"}),
    SurfaceRequest("models", "/v1/models", LISTERS),
    SurfaceRequest("REST, read", f"{V}/agents", READERS),
    SurfaceRequest("REST, the caller", f"{V}/me", LISTERS | PUBLISHERS | ADMINISTERING),
    SurfaceRequest("REST, ask", f"{V}/peers/probe", ASKERS, PROBE),
    SurfaceRequest("REST, publish", f"{V}/agents/999999999", PUBLISHERS, {"tagline": "x"}, "PATCH"),
    SurfaceRequest("REST, the staff", f"{V}/admin/users", frozenset({"root", "root administers"})),
    SurfaceRequest("REST, sign-ins", f"{V}/auth-sessions", SESSIONS),
    SurfaceRequest("hooks of agents", "/api/channel/event", CHANNELS, HOOK),
    SurfaceRequest("files of agents", f"/api/channel/files/999999999?sessionId={ABSENT}", CHANNELS),
    SurfaceRequest("health of a team", "/agent-status", READERS | ASKERS | CHANNELS),
    SurfaceRequest("Agent Protocol, read", GATEWAY_TASKS, READERS),
    SurfaceRequest("Agent Protocol, ask", GATEWAY_TASKS, ASKERS, {"input": "x"}),
    SurfaceRequest("ACL messages", f"{V}/gateway/fipa", ASKERS, ACL),
    SurfaceRequest("models of a team", "/agent/nothing-here/v1/chat/completions", ASKERS, MESSAGE),
    SurfaceRequest("AGNT", "/a2a/v1", KEYS, {"protocol": "openclaw/a2a/v1"}),
    SurfaceRequest("AGNT, venues", "/network/venues", KEYS),
    SurfaceRequest("AGNT, status", "/a2a/v1/status", KEYS | {"no token"}),
    SurfaceRequest("AGNT, webhooks", "/network/webhooks", frozenset({"agnt full"})),
    SurfaceRequest("SCIM", "/scim/v2/Users", frozenset({"scim"})),
    SurfaceRequest("pages", "/account", SESSIONS, by_cookie=True),
    SurfaceRequest("the admin", "/admin/", SESSIONS, by_cookie=True),
    SurfaceRequest("pages, by a header", "/account", SESSIONS),
    SurfaceRequest("the admin, by a header", "/admin/", SESSIONS),
]
