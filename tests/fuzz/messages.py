"""Sound messages of protocols that the hub's description does not describe in full: MCP, SCIM, OAuth, FIPA.

And the calls of the Agent Protocol, which it does not describe at all.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

from hypothesis import strategies as st

from gateway.surface.agent_protocol import ROUTES
from lab.frames import Json
from tests.fuzz.requests import FILES, JSON, HttpCase, Operation
from tests.fuzz.values import Draw
from tests.gateway.test_fipa import PERFORMATIVES
from tests.gateway.test_teams_apart import PARAMETERS
from tests.malformed.mutations import TEXTS
from tests.scim.test_requests_of_providers import CORE, ENTRA_USER, OKTA_USER
from tests.tenancy.routes import NAMED_GROUP
from tests.tenancy.world import fill

CLIENT = {"name": "fuzz", "version": "1"}
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ABSENT = "00000000-0000-4000-8000-000000000000"
ATTRIBUTES = [
    "userName",
    "externalId",
    "id",
    "active",
    "emails.value",
    'emails[type eq "work"].value',
    "members",
    "x",
]
ATTRIBUTES += [
    "name.familyName",
    "meta.created",
    "displayName",
    "urn:ietf:params:scim:schemas:core:2.0:User:userName",
]
FILTER_WORDS = [
    *ATTRIBUTES,
    "eq",
    "ne",
    "co",
    "sw",
    "ew",
    "gt",
    "ge",
    "lt",
    "le",
    "pr",
    "and",
    "or",
    "not",
    "(",
    ")",
]
FILTER_WORDS += [
    "[",
    "]",
    "true",
    "null",
    "1",
    "-1e400",
    '"a"',
    '"',
    "'",
    "\\",
    "%",
    "\x00",
    "(" * 50,
    "not (" * 40,
]
PAGES = ["0", "1", "-1", "2", "9" * 30, "x", "", "1.5", "100000"]
IN_TEAM = {"agent": "alpha", "owner": "demo", "letter": "m-1", "session": "s-1", "proposal": "p-1"}
# Of the Agent Protocol: the body of a task and of a step, the form of an upload, and the page of a list.
ADDITIONAL = {"type": "object", "properties": {"agent": {"type": "string"}, "a": {}}}
WANTED = {"type": "object", "properties": {"input": {"type": "string"}, "additional_input": ADDITIONAL}}
PARTS = {"file": {"type": "string"}, "relative_path": {"type": "string"}}
UPLOADED = {"type": "object", "required": ["file"], "properties": PARTS}
PAGE = [{"name": name, "in": "query", "schema": {"type": "integer"}} for name in ("current_page", "page_size")]


def mcp_messages(task_id: str) -> list[Json]:
    """A message for each method of MCP that the hub knows, and a call of each tool."""
    ask = {"handle": "demo/echo", "message": "hello", "wait_s": 1, "context_id": "c-1"}
    file = {"name": "a.txt", "data": "aGk=", "media_type": "text/plain"}
    tools: dict[str, Json] = {
        "ask_agent": {**ask, "files": [file]},
        "list_agents": {"query": "echo", "cursor": ""},
        "get_task": {"task_id": task_id},
        "answer_task": {"task_id": task_id, "message": "more"},
        "cancel_task": {"task_id": task_id},
        "rate_answer": {"task_id": task_id, "rating": "good", "comment": "yes"},
    }
    about = {"_meta": {"progressToken": 1, "io.modelcontextprotocol/clientInfo": CLIENT}}
    methods: list[tuple[str, Json]] = [
        (
            "initialize",
            {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": CLIENT},
        ),
        ("ping", {}),
        ("tools/list", {"cursor": "x"}),
        *(("tools/call", {"name": name, "arguments": given, **about}) for name, given in tools.items()),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": f"clawbridge://tasks/{task_id}"}),
        ("resources/subscribe", {"uri": f"clawbridge://tasks/{task_id}"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "ask", "arguments": {"agent": "demo/echo", "question": "why?"}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "ask"}, "argument": {"name": "agent", "value": "d"}},
        ),
        ("logging/setLevel", {"level": "debug"}),
        ("server/discover", about),
    ]
    notes = [("notifications/initialized", {}), ("notifications/cancelled", {"requestId": 7, "reason": "no"})]
    notes.append(("notifications/progress", {"progressToken": 1, "progress": 0.5}))
    calls = [{"jsonrpc": "2.0", "id": 7, "method": method, "params": params} for method, params in methods]
    told = [{"jsonrpc": "2.0", "method": method, "params": params} for method, params in notes]
    return [*calls, *told, {"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": {}}}]


def scim_requests() -> list[tuple[str, str, Json | None]]:
    """Method, path and body of the requests that identity providers send."""
    group = {"schemas": [f"{CORE}Group"], "displayName": "Fuzz", "externalId": "f", "members": [{"value": ABSENT}]}
    operations = [
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "new@okta.local"},
        {"op": "add", "path": "members", "value": [{"value": ABSENT, "display": "x"}]},
        {"op": "remove", "path": f'members[value eq "{ABSENT}"]'},
        {"op": "replace", "value": {"active": False, "name.givenName": "Changed"}},
    ]
    patch = {"schemas": [PATCH], "Operations": operations}
    bulk = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:BulkRequest"], "Operations": [
        {"method": "POST", "path": "/Users", "bulkId": "q", "data": OKTA_USER}]}  # fmt: skip
    search = {
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"],
        "filter": "userName pr",
        "count": 5,
    }
    paths = (
        "/ServiceProviderConfig",
        "/Schemas",
        "/ResourceTypes",
        "/Users",
        "/Groups",
        "/Users/1",
        "/Groups/1",
        "/Me",
    )
    return [
        ("POST", "/Users", OKTA_USER),
        ("POST", "/Users", ENTRA_USER),
        ("POST", "/Groups", group),
        *((verb, f"/Users/{number}", OKTA_USER) for verb in ("PUT",) for number in ("1", "2", ABSENT)),
        *(("PATCH", f"/{kind}/{number}", patch) for kind in ("Users", "Groups") for number in ("1", "2", ABSENT)),
        ("PUT", "/Groups/1", group),
        ("POST", "/Bulk", bulk),
        ("POST", "/.search", search),
        ("POST", "/Users/.search", search),
        ("DELETE", "/Users/3", None),
        ("DELETE", "/Groups/3", None),
        *(("GET", path, None) for path in paths),
    ]


@st.composite
def scim_queries(draw: Draw, headers: tuple[tuple[str, str], ...]) -> HttpCase:
    """A list of SCIM, with a filter and pages that are seldom sound."""
    words = draw(st.lists(st.sampled_from(FILTER_WORDS), min_size=1, max_size=8))
    sound = f'{draw(st.sampled_from(ATTRIBUTES))} eq "{draw(st.sampled_from(TEXTS))}"'
    query = {"filter": draw(st.sampled_from([sound, " ".join(words), f"{sound} and {' '.join(words)}"]))}
    for name, values in (
        ("startIndex", PAGES),
        ("count", PAGES),
        ("attributes", ATTRIBUTES),
        ("sortBy", ATTRIBUTES),
    ):
        if draw(st.booleans()):
            query[name] = draw(st.sampled_from(values))
    kind = draw(st.sampled_from(["Users", "Groups", "ResourceTypes", ""]))
    return HttpCase("GET", f"/scim/v2/{kind}?{urlencode(query, errors='replace')}", headers)


def oauth_requests() -> list[tuple[HttpCase, Json | None]]:
    """Requests of the flows of OAuth, with codes that the hub never made."""
    typed, verifier = (("Content-Type", JSON),), "v" * 43
    grant = {"grant_type": "authorization_code", "code": "c", "code_verifier": verifier, "client_id": "x"}
    client = {"redirect_uris": ["http://127.0.0.1:9/cb"], "client_name": "f", "scope": "ask read"}
    client |= {"grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none"}
    posts: list[tuple[str, Json]] = [
        ("oauth/token", {"code": "c", "code_verifier": verifier, "state": "s"}),
        ("spa/exchange", {"code": "c", "code_verifier": verifier, "redirect_uri": "http://127.0.0.1/cb"}),
        ("clients", client),
        ("clients/token", {**grant, "redirect_uri": "http://127.0.0.1:9/cb", "resource": "http://127.0.0.1/mcp"}),
        ("clients/token", {"grant_type": "refresh_token", "refresh_token": "r", "client_id": "x", "scope": "ask"}),
        ("device/code", {"client_id": "x", "name": "f"}),
        ("device/token", {"device_code": "d", "grant_type": "urn:ietf:params:oauth:grant-type:device_code"}),
    ]
    challenge = {"code_challenge": "c" * 43, "code_challenge_method": "S256", "state": "s" * 20}
    start = challenge | {"redirect_uri": "http://127.0.0.1:9/cb", "response_type": "code", "client_id": "x"}
    pages = ("/api/v1/auth/oauth/start", "/api/v1/auth/spa/start", "/consent", "/device", "/signin")
    gets = [HttpCase("GET", f"{page}?{urlencode(start)}") for page in pages]
    gets.append(HttpCase("GET", f"/api/v1/auth/oauth/callback?{urlencode({'code': 'c', 'state': 's' * 20})}"))
    return [*((HttpCase("POST", f"/api/v1/auth/{path}", typed), body) for path, body in posts),
            *((one, None) for one in gets)]  # fmt: skip


def acl_messages() -> list[Json]:
    """Two ACL messages of each performative of FIPA's standard, and one for each service of the gateway."""
    about = {"sender": "demo", "content": "hello", "conversation-id": "t-1", "language": "json", "ontology": "x"}
    ask = about | {"receiver": "@demo/echo", "reply-with": "r-1"}
    told: Json = about | {"receiver": ["alpha", {"name": "@demo/echo"}], "in-reply-to": "p-1"}
    told |= {"content": {"role": "user", "content": "hello"}, "reply-by": "2099-01-01T00:00:00Z"}
    request = {"performative": "request", "reply-with": "r-2"}
    services = [
        request | {"content": {"service": service, "params": fill(params, IN_TEAM)}}
        for service, many in PARAMETERS.items()
        for params in many
    ]
    return [one | {"performative": name} for name in PERFORMATIVES for one in (ask, told)] + services


def protocol_calls(headers: tuple[tuple[str, str], ...], own: dict[str, str]) -> Iterator[Operation]:
    """The calls of the Agent Protocol, described as OpenAPI would. `own`: ids, by their names in paths."""
    for pattern, _, creates in ROUTES:
        path = NAMED_GROUP.sub(r"{\1}", pattern.pattern)
        ids: list[Json] = [{"name": name, "in": "path"} for name in re.findall(r"{(\w+)}", path)]
        yield Operation(path, "GET", {"parameters": [*ids, *PAGE], "responses": {"503": {}}}, headers, own)
        if creates is not None:
            body = {FILES: {"schema": UPLOADED}} if path.endswith("/artifacts") else {JSON: {"schema": WANTED}}
            described = {"parameters": ids, "requestBody": {"content": body}}
            described["responses"] = {"502": {}, "503": {}, "504": {}}
            yield Operation(path, "POST", described, headers, own)
