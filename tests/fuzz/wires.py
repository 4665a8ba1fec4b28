"""The wires over HTTP: what is sent on each, and a sound request."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.callers import bearer, envelope, question, rpc_path
from lab.frames import Json
from tests.agnt.wire import envelope as agnt_envelope
from tests.agnt.wire import stamp
from tests.descriptions.seeded import AGNT_KEY, HOOK, WITHIN_S, Seeded
from tests.fuzz.messages import (
    acl_messages,
    mcp_messages,
    oauth_requests,
    protocol_calls,
    scim_queries,
    scim_requests,
)
from tests.fuzz.requests import JSON, HttpCase, HttpWire, Operation, changed_cases, described_cases
from tests.fuzz.values import Schemas
from tests.malformed.valid_requests import all_valid

AGENT = "demo/echo"
BASE = rpc_path(AGENT)
BASE_DESCRIBED = "/api/a2a/v1/agents/{owner}/{slug}"
FIPA, TASKS = "/api/v1/gateway/fipa", "/ap/v1/agent/tasks"
TEAM_MODEL = "/agent/echo"  # the demo's agent, by its name among its owner's
MCP_VERSIONS = ["2025-06-18", "2026-07-28", "1999-01-01", "x"]
# Operations that end what the others need: the account, its session, the demo's agent.
ENDING = {
    *(
        "deleteAccount",
        "postLogout",
        "postRevokeAuthSession",
        "postAdminHalts",
        "deleteOneToken",
        "postRotateToken",
    ),
    *("patchStaffAccounts", "deleteAccountSessions", "deleteAccountTokens", "deleteGroupAccount"),
    *("deleteAccountCredential", "postHaltAgent", "deleteOneAgent", "postBulkChanges", "patchOneAgent"),
    *("deleteOneApiKey", "patchOneApiKey", "patchNetwork"),
}
# REST first: among its requests are exports of all that the account has, which is more after other wires.
WIRES = ("rest", "rpc 1.0", "rpc 0.3", "rpc hub", "http_json", "agnt", "mcp", "chat", "gateway", "scim", "oauth")
NO_REPLY = frozenset({502, 503, 504})  # an agent, or a server behind it, did not answer
_numbers = itertools.count(1)


@dataclass
class Wires:
    """Makes the wires of a hub. `description`: its OpenAPI document; `scim_token`, `agnt_key`: its credentials."""

    seeded: Seeded
    description: Json
    scim_token: str
    agnt_key: str

    def __post_init__(self) -> None:
        task_id = self.seeded.names["task_id"]
        names: dict[str, Sequence[Any]] = {
            "id": [task_id, 1, "1"],
            "taskId": [task_id],
            "sessionId": [self.seeded.names["public_id"], self.seeded.free_session],
            "handle": [AGENT, "@demo/echo"],
            "agent": [AGENT, "alpha"],
            "model": [f"agent/{AGENT}"],
            "login": ["bob", "alice"],
            "url": [HOOK],
            "previous_response_id": [task_id],
            "timestamp": [stamp()],
            "protocol": ["openclaw/a2a/v1"],
            "venue_id": [self.seeded.names["venue_id"], "la-brisa"],
            "ttl_ms": [15_000],
        }
        self.schemas = Schemas(self.description, names)

    def make(self, name: str) -> HttpWire:
        """The wire of one of the names WIRES."""
        if name.startswith("rpc "):
            return self.rpc(name.removeprefix("rpc "))
        made: HttpWire = getattr(self, name)()
        return made

    def rpc(self, dialect: str) -> HttpWire:
        """A2A over JSON-RPC in one dialect: sound requests changed, and those of the description."""
        version = {"1.0": "1.0", "0.3": "0.3", "hub": ""}[dialect]
        headers = self._headers(JSON, *([("A2A-Version", version)] if version else []))
        task_id = self.seeded.names["task_id"]
        valid = [one for one in all_valid(0, task_id) if (one.binding, one.dialect) == ("JSON-RPC", dialect)]
        sound = [(HttpCase("POST", BASE, headers), envelope(one.name, one.params, 7)) for one in valid]
        return HttpWire(f"requests of A2A JSON-RPC, {_shown(dialect)}", changed_cases(sound), self._question)

    def http_json(self) -> HttpWire:
        """A2A 1.0 over HTTP+JSON."""
        operations = self._operations(BASE_DESCRIBED, also={"A2A-Version": "1.0"})
        cases = described_cases(self.schemas, [one for one in operations if one.path != BASE_DESCRIBED])
        return HttpWire("requests of A2A HTTP+JSON", cases, self._question)

    def agnt(self) -> HttpWire:
        """Envelopes, and the calls of a key."""
        key = (("Authorization", f"Bearer {self.agnt_key}"),)
        typed = (*key, ("Content-Type", JSON))
        send = HttpCase("POST", "/a2a/v1", typed, may_answer=NO_REPLY)
        venue = self.seeded.names["venue_id"]
        payloads: list[tuple[str, Json]] = [
            ("network.ping", {}),
            ("venue.list", {"limit": 5}),
            ("venue.search", {"query": "la brisa", "category": "restaurant", "limit": 3}),
            ("booking.confirm", {"venue_id": venue, "party_size": 2, "user_note": "by the sea"}),
            ("booking.status", {"booking_id": self.seeded.names["booking_id"]}),
            ("booking.cancel", {"booking_id": self.seeded.names["booking_id"]}),
        ]
        sound = [(send, agnt_envelope(intent, payload)) for intent, payload in payloads]
        described = [
            one for one in self._operations("/a2a/v1", "/network/") if one.described["operationId"] not in ENDING
        ]
        cases = changed_cases(sound) | described_cases(self.schemas, described)
        ping = HttpCase("POST", "/a2a/v1", typed)

        def sound_ping() -> HttpCase:
            return _with_body(ping, agnt_envelope())

        return HttpWire("AGNT envelopes and calls", cases, sound_ping)

    def mcp(self) -> HttpWire:
        """Messages of MCP."""
        headers = (*self._headers(JSON), ("Accept", "application/json, text/event-stream"))
        sound = [(HttpCase("POST", "/mcp", headers), one) for one in mcp_messages(self.seeded.names["task_id"])]
        more = {
            "MCP-Protocol-Version": MCP_VERSIONS,
            "Mcp-Session-Id": ["x", "0" * 32],
            "Mcp-Method": ["tools/call"],
            "Mcp-Name": ["ask_agent"],
        }

        def listed() -> HttpCase:
            return _with_body(
                HttpCase("POST", "/mcp", headers), {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            )

        return HttpWire("messages of MCP", changed_cases(sound, more), listed)

    def chat(self) -> HttpWire:
        """OpenAI's API."""
        model = f"agent/{AGENT}"
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
        response = {
            **{"model": model, "input": [item], "stream": False, "instructions": "be brief", "store": True},
            **{"previous_response_id": self.seeded.names["task_id"], "text": {"format": {"type": "text"}}},
        }
        completions = HttpCase("POST", "/v1/chat/completions", self._headers(JSON), may_answer=NO_REPLY)
        responses = HttpCase("POST", "/v1/responses", self._headers(JSON), may_answer=NO_REPLY)
        sound = [(completions, one) for one in _completions(model)]
        sound += [(responses, response), (responses, response | {"input": "hi", "stream": True})]
        cases = changed_cases(sound) | described_cases(self.schemas, self._operations("/v1/"))

        def asked() -> HttpCase:
            return _with_body(completions, {"model": model, "messages": [{"role": "user", "content": "hello"}]})

        return HttpWire("requests of chat completions and responses", cases, asked)

    def gateway(self) -> HttpWire:
        """ACL messages of FIPA, agents of a team as models, and the Agent Protocol: in no description."""
        signed_in = self._headers(JSON)
        acl = HttpCase("POST", FIPA, signed_in, may_answer=frozenset({503}))
        forms = ("", "/chat/completions", "/v1/chat/completions")
        models = [HttpCase("POST", f"{TEAM_MODEL}{form}", signed_in, may_answer=NO_REPLY) for form in forms]
        cases = changed_cases([(acl, one) for one in acl_messages()])
        cases |= changed_cases([(model, one) for model in models for one in _completions("x")])
        cases |= described_cases(self.schemas, [*protocol_calls(signed_in[:1], self._protocol_task())])

        def asked() -> HttpCase:
            return _with_body(models[0], {"messages": [{"role": "user", "content": "hello"}]})

        return HttpWire("requests of the gateway's HTTP protocols", cases, asked)

    def _protocol_task(self) -> dict[str, str]:
        """The ids of a task of the Agent Protocol with a step and an upload, by their names in addresses."""
        token = self.seeded.tokens["bearer"]
        wanted = {"input": "hello", "additional_input": {"agent": f"@{AGENT}"}}
        task = self.seeded.post(TASKS, token, **wanted)["task_id"]
        step = self.seeded.post(f"{TASKS}/{task}/steps", token)["step_id"]
        files = {"file": ("a.txt", b"hello", "text/plain")}
        url, headers = f"{self.seeded.hub.url}{TASKS}/{task}/artifacts", bearer(token)
        uploaded = self.seeded.http.post(url, files=files, headers=headers, timeout=WITHIN_S)
        assert uploaded.ok, uploaded.text
        return {"task": task, "step": step, "artifact": uploaded.json()["artifact_id"]}

    def rest(self) -> HttpWire:
        """The native API, but for calls that end what the others need."""
        operations = self._operations(
            "/api/v1/", "/api/channel/", "/agent-status", "/api/a2a/history", "/.well-known/"
        )
        kept = [one for one in operations if one.described["operationId"] not in ENDING]
        cases = described_cases(self.schemas, [one for one in kept if not one.path.startswith("/api/v1/auth/")])
        return HttpWire("REST requests", cases, self._me)

    def oauth(self) -> HttpWire:
        """Sign-in, and the endpoints of OAuth."""
        operations = self._operations("/api/v1/auth", "/.well-known/oauth")
        kept = [one for one in operations if one.described["operationId"] not in ENDING]
        cases = described_cases(self.schemas, kept) | changed_cases(oauth_requests())
        return HttpWire("OAuth and sign-in requests", cases, self._me)

    def scim(self) -> HttpWire:
        """SCIM, as an identity provider."""
        headers = (("Authorization", f"Bearer {self.scim_token}"), ("Content-Type", "application/scim+json"))
        sound = [
            (HttpCase(verb, f"/scim/v2{path}", headers, may_answer=frozenset({501})), body)
            for verb, path, body in scim_requests()
        ]

        def listed() -> HttpCase:
            return HttpCase("GET", "/scim/v2/Users?count=1", headers)

        return HttpWire("SCIM requests", changed_cases(sound) | scim_queries(headers), listed)

    def _operations(self, *prefixes: str, also: Mapping[str, str] | None = None) -> list[Operation]:
        found = []
        for path, item in self.description["paths"].items():
            for verb, described in item.items():
                if path.startswith(prefixes):
                    headers = self._sign_in(described) | (also or {})
                    own = {} if verb == "delete" else self.seeded.names
                    found.append(Operation(path, verb.upper(), described, tuple(headers.items()), own))
        return found

    def _sign_in(self, described: Json) -> dict[str, str]:
        schemes = [name for one in described.get("security", ()) for name in one]
        if not schemes:
            return {}
        tokens = self.seeded.tokens | {AGNT_KEY: self.agnt_key}
        return {"Authorization": f"Bearer {tokens[schemes[0]]}"}

    def _headers(self, content_type: str, *more: tuple[str, str]) -> tuple[tuple[str, str], ...]:
        return (("Authorization", f"Bearer {self.seeded.tokens['bearer']}"), ("Content-Type", content_type), *more)

    def _question(self) -> HttpCase:
        asked = envelope("SendMessage", question("hello", f"sound-{next(_numbers)}"))
        return _with_body(HttpCase("POST", BASE, self._headers(JSON)), asked)

    def _me(self) -> HttpCase:
        return HttpCase("GET", "/api/v1/me", self._headers(JSON))


def _with_body(case: HttpCase, document: Json) -> HttpCase:
    return HttpCase(case.verb, case.target, case.headers, json.dumps(document).encode(), case.may_answer)


def _completions(model: str) -> list[Json]:
    """Bodies of chat completions: at once, streamed, and in a format."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "hello"}, image]},
        {"role": "assistant", "content": "hi", "tool_calls": []},
        {"role": "user", "content": "again"},
    ]
    more = {"temperature": 1, "n": 1, "max_tokens": 5, "stream_options": {"include_usage": True}, "user": "u"}
    asked = {"model": model, "messages": messages, "stream": False, "metadata": {"a": "b"}, **more}
    shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}}
    return [asked, asked | {"stream": True}, asked | {"response_format": shape}]


def _shown(dialect: str) -> str:
    return "the hub's own dialect" if dialect == "hub" else f"A2A {dialect}"
