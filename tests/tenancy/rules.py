"""Who may do what: one line for every address, operation, frame and method the hub serves.

`test_rules.py` fails when one of them has no line here, or a line here has lost what it is about.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class May(StrEnum):
    """The least that a caller must be.

    A caller who may not even see the object gets the answer for an absent one.
    """

    ANY_CALLER = "every caller, signed in or not"
    SIGNED_IN = "any live session or app token; about one's own things only"
    BY_SESSION = "a live session token: no app's"
    STAFF = "the staff; a 403 for other users"
    VIEWER = "viewer of the session"
    PROMPTER = "prompter of the session"
    APPROVER = "approver of the session"
    OWNER = "owner of the session; a 403 for those it is shared with"
    MINE = "the owner; absent for all others"
    AGENT = "the session's own channel token; absent for other channel tokens, a 401 for operators"
    AGENT_OR_OWNER = "the owner, or the session's own channel token"
    SEES_AGENT = "users to whom the agent's access shows it, and its owner"
    SEES_CARD = "of a public agent every caller; of another one users who may ask it"
    ASKS_AGENT = "users whom the agent's access lets ask it and who are not blocked"
    BROWSER = "a browser that is signed in; others are sent to /signin"
    OWN_PAGE = "the owner's browser, or one with the role; for others as if it were not there"
    BY_HAND = "what a test of its own shows"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Who may, and a request that would succeed for them. `{names}` stand for what `rows.py` made.

    `asks`: it is refused to whom the owner blocks. `by_session`: no app token will do. `writes`: it changes what
    it names, so each caller gets a set of rows of their own. `names` that mean something else in it.
    """

    may: May
    body: Any = None
    query: str = ""
    form: bool = False
    ok: tuple[int, ...] = (200,)
    asks: bool = False
    writes: bool = False
    by_session: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    test: str = ""
    least_rank: int = 4


S, V = "/api/v1/sessions/{public_id}", "/api/v1"
HOOK_EVENT = {"sessionId": "{public_id}", "kind": "tail", "type": "Notification", "payload": {}}
USAGE = {
    "capturedAt": "2026-01-01T00:00:00Z",
    "ccSessionId": "cc",
    "reason": "final",
    "models": [{"model": "m", "inputTokens": 1}],
}
NOT_OFFERED = Rule(may=May.VIEWER, body={}, ok=(404,))
NO_DESKTOP = Rule(may=May.SIGNED_IN, body={}, ok=(404,))
ADMIN = Rule(may=May.STAFF)
PUBLIC = Rule(may=May.ANY_CALLER)
OWN_PAGE = Rule(may=May.OWN_PAGE)

SESSIONS: dict[str, Rule] = {
    f"GET {V}/sessions": Rule(may=May.SIGNED_IN),
    f"POST {V}/sessions/prune": Rule(may=May.SIGNED_IN, body={"dryRun": False, "routingName": "@unknown"}),
    f"POST {V}/sessions/preflight": Rule(may=May.SIGNED_IN, body={}, ok=(404,)),
    f"GET {S}": Rule(may=May.VIEWER),
    f"PATCH {S}": Rule(may=May.OWNER, body={"autoStart": False}),
    f"DELETE {S}": Rule(may=May.OWNER, query="?hard=true", writes=True),
    f"POST {S}/archive": Rule(may=May.OWNER, body={}, writes=True),
    f"GET {S}/events": Rule(may=May.VIEWER),
    f"GET {S}/op-messages": Rule(may=May.VIEWER),
    f"GET {S}/timeline": Rule(may=May.VIEWER),
    f"GET {S}/shares": Rule(may=May.OWNER),
    f"POST {S}/shares": Rule(may=May.OWNER, body={"login": "zoe", "role": "viewer"}, ok=(201,), writes=True),
    f"DELETE {S}/shares/{{login}}": Rule(may=May.OWNER, writes=True),
    f"GET {S}/permissions": Rule(may=May.APPROVER),
    f"POST {S}/permissions/{{request_id}}/resolve": Rule(
        may=May.APPROVER, body={"decision": "allow"}, writes=True
    ),
    f"GET {S}/token-usage": Rule(may=May.VIEWER),
    f"POST {S}/token-usage": Rule(may=May.AGENT_OR_OWNER, body=USAGE, ok=(201,), writes=True),
    f"GET {V}/token-usage": Rule(may=May.SIGNED_IN),
    f"GET {S}/files": Rule(may=May.VIEWER),
    f"POST {S}/files": Rule(may=May.PROMPTER, form=True, ok=(201,), writes=True),
    f"DELETE {V}/files/{{file_id}}": Rule(may=May.PROMPTER, writes=True),
    f"GET {V}/files/{{file_id}}/content": Rule(may=May.VIEWER),
    f"POST {S}/kill": NOT_OFFERED,
    f"POST {S}/restart": NOT_OFFERED,
    f"POST {S}/soft-restart": NOT_OFFERED,
    f"POST {S}/input": NOT_OFFERED,
    f"POST {S}/rotate-channel-token": NOT_OFFERED,
    f"GET {S}/screenshot": NOT_OFFERED,
    f"GET {V}/desktops": Rule(may=May.SIGNED_IN),
    f"DELETE {V}/desktops/{{desktop}}": NO_DESKTOP,
    f"POST {V}/desktops/{{desktop}}/sessions": NO_DESKTOP,
    f"GET {V}/desktops/{{desktop}}/shares": NO_DESKTOP,
    f"POST {V}/desktops/{{desktop}}/shares": NO_DESKTOP,
    f"DELETE {V}/desktops/{{desktop}}/shares/{{login}}": NO_DESKTOP,
}

ASKING: dict[str, Rule] = {
    f"POST {S}/prompt": Rule(may=May.PROMPTER, body={"text": "hi"}, asks=True),
    f"POST {V}/peers/{{peer}}/route": Rule(may=May.PROMPTER, body={"prompt": "hi", "mode": "ask"}, asks=True),
    f"POST {V}/peers/probe": Rule(may=May.SIGNED_IN, body={"prompt": "hi", "peers": ["unknown/nothing"]}),
    f"GET {V}/peers": Rule(may=May.SIGNED_IN),
    f"GET {V}/questions": Rule(may=May.SIGNED_IN),
}

AGENTS: dict[str, Rule] = {
    f"GET {V}/agents": Rule(may=May.SIGNED_IN),
    f"POST {V}/agents": Rule(
        may=May.MINE, body={"sessionId": "{spare_id}", "name": "new", "status": "draft"}, ok=(201,), writes=True
    ),
    f"POST {V}/agents/cards": Rule(may=May.SIGNED_IN, body={"cardUrl": "ftp://nowhere"}, ok=(400,)),
    f"POST {V}/agents/bulk": Rule(may=May.BY_HAND, test="test_only_ones_own_agents_are_changed_by_rest"),
    f"GET {V}/agents/by-handle/{{owner}}/{{slug}}": Rule(may=May.SEES_AGENT),
    f"PATCH {V}/agents/{{agent_id}}": Rule(may=May.MINE, body={"tagline": "new"}, writes=True),
    f"DELETE {V}/agents/{{agent_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"GET {V}/agents/{{agent_id}}/card-change": Rule(may=May.BY_HAND, test="test_an_owner_decides_by_rest"),
    f"POST {V}/agents/{{agent_id}}/card-change": Rule(may=May.BY_HAND, test="test_an_owner_decides_by_rest"),
    f"GET {V}/agents/{{agent_id}}/inbound": Rule(may=May.MINE),
    f"GET {V}/agents/{{agent_id}}/threads": Rule(may=May.MINE),
    f"POST {V}/agents/{{agent_id}}/halt": Rule(may=May.MINE, body={}, ok=(200, 201), writes=True),
    f"DELETE {V}/agents/{{agent_id}}/halt": Rule(may=May.MINE, ok=(204,), writes=True),
    f"GET {V}/blocks": Rule(may=May.SIGNED_IN),
    f"POST {V}/blocks": Rule(may=May.SIGNED_IN, body={"login": "gus"}, ok=(200, 201)),
    f"DELETE {V}/blocks/{{login}}": Rule(may=May.SIGNED_IN, names={"login": "zoe"}),
}

TEAMS: dict[str, Rule] = {
    f"GET {V}/team/sessions": Rule(may=May.SIGNED_IN),
    f"GET {V}/team/sessions/export": Rule(may=May.BY_HAND, test="test_rest_exports_and_imports"),
    f"POST {V}/team/sessions/import": Rule(may=May.BY_HAND, test="test_rest_exports_and_imports"),
    f"GET {V}/team/agents": Rule(may=May.SIGNED_IN),
    f"GET {V}/team/agents/{{agent_name}}": Rule(may=May.MINE),
    f"PATCH {V}/team/agents/{{agent_name}}": Rule(may=May.MINE, body={"role": "examiner"}, writes=True),
    f"DELETE {V}/team/agents/{{agent_name}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"GET {V}/team/letters": Rule(may=May.SIGNED_IN),
    f"GET {V}/team/letters/{{letter_id}}": Rule(may=May.MINE),
    f"DELETE {V}/team/letters/{{letter_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"POST {V}/team/letters/{{letter_id}}/retry": Rule(may=May.MINE, ok=(202,), writes=True),
    f"GET {V}/team/policy": Rule(may=May.SIGNED_IN),
    f"PATCH {V}/team/policy": Rule(may=May.SIGNED_IN, body={"queuesMessages": False}),
    f"GET {V}/team/proposals": Rule(may=May.SIGNED_IN),
    f"GET {V}/team/proposals/{{proposal_id}}": Rule(may=May.MINE),
}

ACCOUNTS: dict[str, Rule] = {
    f"GET {V}/me": Rule(may=May.SIGNED_IN),
    f"GET {V}/me/export": Rule(may=May.BY_SESSION),
    f"DELETE {V}/me/account": Rule(may=May.BY_HAND, test="test_erasing_takes_the_login_and_a_session"),
    f"GET {V}/me/retention": Rule(may=May.SIGNED_IN),
    f"PUT {V}/me/retention": Rule(may=May.SIGNED_IN, body={"questionsKeptDays": None}),
    f"GET {V}/tokens": Rule(may=May.SIGNED_IN),
    f"POST {V}/tokens/channel": Rule(may=May.SIGNED_IN, body={"name": "new"}, ok=(201,)),
    f"DELETE {V}/tokens/{{token_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"POST {V}/tokens/{{token_id}}/rotate": Rule(
        may=May.MINE, body={"overlap": 0}, ok=(201,), writes=True, by_session=True
    ),
    f"GET {V}/auth-sessions": Rule(may=May.BY_SESSION),
    f"POST {V}/auth-sessions/{{prefix}}/revoke": Rule(may=May.MINE, by_session=True, writes=True),
    f"POST {V}/auth/apps/mint": Rule(may=May.BY_SESSION, body={"name": "new"}, ok=(201,)),
    f"POST {V}/auth/logout": Rule(may=May.BY_HAND, test="test_logging_out_twice_is_fine"),
    f"GET {V}/auth/oauth/start": Rule(may=May.ANY_CALLER, ok=(503,)),
    f"GET {V}/auth/oauth/callback": Rule(may=May.ANY_CALLER, ok=(400, 503)),
    f"POST {V}/auth/oauth/token": Rule(may=May.ANY_CALLER, body={}, ok=(400, 503)),
    f"GET {V}/auth/oidc/{{number}}/start": Rule(may=May.ANY_CALLER, ok=(404,), names={"number": "9"}),
    f"GET {V}/auth/oidc/{{number}}/callback": Rule(may=May.ANY_CALLER, ok=(404,), names={"number": "9"}),
    f"GET {V}/auth/spa/start": Rule(may=May.ANY_CALLER, ok=(400,)),
    f"POST {V}/auth/spa/exchange": Rule(may=May.ANY_CALLER, body={}, ok=(400,)),
    f"POST {V}/auth/clients": Rule(
        may=May.ANY_CALLER, body={"redirect_uris": ["http://127.0.0.1:8765/"]}, ok=(201,)
    ),
    f"POST {V}/auth/clients/token": Rule(may=May.ANY_CALLER, body={}, ok=(400, 415)),
    f"POST {V}/auth/device/code": Rule(may=May.ANY_CALLER, body={"app_name": "tv", "machine_id": "m"}),
    f"POST {V}/auth/device/token": Rule(may=May.ANY_CALLER, body={"device_code": "x"}, ok=(400,)),
}

ADMINISTRATION: dict[str, Rule] = {
    f"GET {V}/admin/stats/overview": ADMIN,
    f"GET {V}/admin/stats/timeseries/{{metric}}": ADMIN,
    f"GET {V}/admin/stats/users/active": ADMIN,
    f"GET {V}/admin/sessions": ADMIN,
    f"GET {V}/admin/sessions/{{public_id}}": ADMIN,
    f"GET {V}/admin/sessions/{{public_id}}/timeline": ADMIN,
    f"GET {V}/admin/halts": ADMIN,
    f"POST {V}/admin/halts": Rule(may=May.STAFF, body={"kind": "caller", "name": "unknown-here"}, ok=(404,)),
    f"DELETE {V}/admin/halts/{{halt_id}}": Rule(may=May.STAFF, ok=(404,), names={"halt_id": "999999"}),
    f"GET {V}/admin/shares": ADMIN,
    f"GET {V}/admin/agents": ADMIN,
    f"GET {V}/admin/tokens": ADMIN,
    f"GET {V}/admin/users": ADMIN,
}

WEBHOOKS: dict[str, Rule] = {
    f"GET {V}/webhooks": Rule(may=May.SIGNED_IN),
    f"POST {V}/webhooks": Rule(
        may=May.SIGNED_IN, body={"url": "https://192.0.2.1/x", "events": ["x.y"]}, ok=(201, 400)
    ),
    f"GET {V}/webhooks/events": Rule(may=May.SIGNED_IN),
    f"GET {V}/webhooks/{{webhook_id}}": Rule(may=May.MINE),
    f"PATCH {V}/webhooks/{{webhook_id}}": Rule(may=May.MINE, body={"events": ["x.y"]}, writes=True),
    f"DELETE {V}/webhooks/{{webhook_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"POST {V}/webhooks/{{webhook_id}}/test": Rule(may=May.MINE, ok=(202,), writes=True),
    f"POST {V}/webhooks/{{webhook_id}}/roll-secret": Rule(may=May.MINE, writes=True),
    f"GET {V}/webhooks/{{webhook_id}}/deliveries": Rule(may=May.MINE),
    f"GET {V}/webhooks/{{webhook_id}}/deliveries/{{delivery_id}}": Rule(may=May.MINE),
    f"POST {V}/webhooks/{{webhook_id}}/deliveries/{{delivery_id}}/replay": Rule(
        may=May.MINE, ok=(202,), writes=True
    ),
}

GATEWAY_REST: dict[str, Rule] = {
    "GET /api/a2a/live": Rule(may=May.SIGNED_IN),
    "GET /api/a2a/history": Rule(may=May.SIGNED_IN),
    f"GET {V}/gateway/keys": Rule(may=May.SIGNED_IN),
    f"POST {V}/gateway/keys": Rule(may=May.SIGNED_IN, body={"name": "a key"}, ok=(201, 429)),
    f"DELETE {V}/gateway/keys/{{key_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
}

N = f"{V}/network"
OF_A_NETWORK: dict[str, Rule] = {
    f"GET {N}": Rule(may=May.SIGNED_IN),
    f"PATCH {N}": Rule(may=May.SIGNED_IN, body={"strict": True}),
    f"GET {N}/venues": Rule(may=May.SIGNED_IN),
    f"POST {N}/venues": Rule(may=May.SIGNED_IN, body={"slug": "a-venue", "name": "A venue"}, ok=(201, 409)),
    f"GET {N}/venues/export": Rule(may=May.SIGNED_IN),
    f"POST {N}/venues/import": Rule(may=May.BY_HAND, test="test_a_file_changes_the_network_of_its_sender_alone"),
    f"GET {N}/venues/{{venue_id}}": Rule(may=May.MINE),
    f"PATCH {N}/venues/{{venue_id}}": Rule(may=May.MINE, body={"name": "new"}, writes=True),
    f"DELETE {N}/venues/{{venue_id}}": Rule(may=May.MINE, ok=(200,), writes=True),
    f"GET {N}/keys": Rule(may=May.SIGNED_IN),
    f"POST {N}/keys": Rule(may=May.SIGNED_IN, body={"name": "new"}, ok=(201,)),
    f"PATCH {N}/keys/{{api_key_id}}": Rule(may=May.MINE, body={"tier": "pro"}, writes=True),
    f"DELETE {N}/keys/{{api_key_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"POST {N}/keys/{{api_key_id}}/rotate-secret": Rule(may=May.MINE, body={}, writes=True),
    f"GET {N}/bookings": Rule(may=May.SIGNED_IN),
    f"GET {N}/bookings/{{booking_id}}": Rule(may=May.MINE),
    f"PATCH {N}/bookings/{{booking_id}}": Rule(may=May.MINE, body={"status": "confirmed"}, writes=True),
    f"GET {N}/usage": Rule(may=May.SIGNED_IN),
    f"GET {N}/interactions": Rule(may=May.SIGNED_IN),
}

CHANNEL_REST: dict[str, Rule] = {
    "POST /api/channel/event": Rule(may=May.AGENT, body=HOOK_EVENT, ok=(202,), writes=True),
    "POST /api/channel/files": Rule(may=May.AGENT, form=True, ok=(201,), writes=True),
    "GET /api/channel/files/{file_id}": Rule(may=May.AGENT, query="?sessionId={public_id}"),
}

CARD = Rule(may=May.SEES_CARD)
OF_AGENT = Rule(may=May.BY_HAND, test="test_who_reaches_an_agent_by_any_method")
ASKED = Rule(may=May.ASKS_AGENT)
ONES_TASK = Rule(may=May.BY_HAND, test="test_a_task_is_its_callers_alone")
BRIDGE: dict[str, Rule] = {
    "GET /api/a2a/v1/agents/{owner}/{slug}/agent-card.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/.well-known/agent-card.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/.well-known/agent.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/v1/.well-known/agent-card.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/usage.md": CARD,
    "GET /.well-known/ai-catalog.json": PUBLIC,
    "GET /.well-known/ard.json": PUBLIC,
    "GET /.well-known/jwks.json": PUBLIC,
    "POST /api/a2a/v1/agents/{owner}/{slug}": Rule(may=May.BY_HAND, test="test_who_asks_over_the_bridge"),
    "METHOD hub SendMessage": ASKED,
    "METHOD hub SendStreamingMessage": ASKED,
    "METHOD hub GetTask": ONES_TASK,
    "METHOD 0.3 message/send": ASKED,
    "METHOD 0.3 message/stream": ASKED,
    "METHOD 0.3 tasks/get": ONES_TASK,
    "METHOD 0.3 tasks/cancel": ONES_TASK,
    "METHOD 0.3 tasks/resubscribe": ONES_TASK,
    "METHOD 0.3 agent/getAuthenticatedExtendedCard": OF_AGENT,
    "METHOD 1.0 SendMessage": ASKED,
    "METHOD 1.0 SendStreamingMessage": ASKED,
    "METHOD 1.0 GetTask": ONES_TASK,
    "METHOD 1.0 ListTasks": Rule(may=May.BY_HAND, test="test_a_list_of_tasks_is_its_callers_alone"),
    "METHOD 1.0 CancelTask": ONES_TASK,
    "METHOD 1.0 SubscribeToTask": ONES_TASK,
    "METHOD 1.0 CreateTaskPushNotificationConfig": ONES_TASK,
    "METHOD 1.0 GetTaskPushNotificationConfig": ONES_TASK,
    "METHOD 1.0 ListTaskPushNotificationConfigs": ONES_TASK,
    "METHOD 1.0 DeleteTaskPushNotificationConfig": ONES_TASK,
    "METHOD 1.0 GetExtendedAgentCard": OF_AGENT,
}

MCP: dict[str, Rule] = {
    "GET /.well-known/oauth-protected-resource": PUBLIC,
    "GET /.well-known/oauth-protected-resource/mcp": PUBLIC,
    "POST /mcp": Rule(may=May.BY_HAND, test="test_without_a_live_token_the_answer_says_where_to_sign_in"),
    "TOOL list_agents": Rule(may=May.BY_HAND, test="test_who_asks_by_tools"),
    "TOOL ask_agent": Rule(may=May.BY_HAND, test="test_who_asks_by_tools"),
    "TOOL get_task": Rule(may=May.BY_HAND, test="test_a_task_is_its_callers_alone_by_tools"),
    "TOOL answer_task": Rule(may=May.BY_HAND, test="test_a_task_is_its_callers_alone_by_tools"),
    "TOOL cancel_task": Rule(may=May.BY_HAND, test="test_a_task_is_its_callers_alone_by_tools"),
}

CHAT: dict[str, Rule] = {
    "POST /v1/chat/completions": Rule(may=May.BY_HAND, test="test_who_may_ask_and_list_models"),
    "POST /v1/responses": Rule(may=May.BY_HAND, test="test_who_may_continue_a_response"),
    "GET /v1/models": Rule(may=May.BY_HAND, test="test_who_may_ask_and_list_models"),
    "GET /v1/models/{model}": Rule(may=May.BY_HAND, test="test_who_may_ask_and_list_models"),
}

OF_ITS_NETWORK = Rule(may=May.BY_HAND, test="test_venues_of_another_network_are_as_absent_as_those_that_are_not")
ENVELOPES: dict[str, Rule] = {"POST /a2a/v1": OF_ITS_NETWORK, "GET /network/venues": OF_ITS_NETWORK}

OF_TEAM = Rule(may=May.BY_HAND, test="test_the_health_of_a_team_is_its_owners_alone")
PAGES: dict[str, Rule] = {
    "GET /livez": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /metrics": PUBLIC,  # from this machine: tests/deploy
    "GET /a2a/v1/status": PUBLIC,
    "GET /api/v1/schema": PUBLIC,
    "GET /api/ws-docs/json": PUBLIC,
    "GET /api/ws-docs/yaml": PUBLIC,
    "PAGE /": PUBLIC,
    "PAGE /docs": PUBLIC,
    "PAGE /docs/{name}": Rule(may=May.ANY_CALLER, names={"name": "errors"}),
    "PAGE /docs/api": PUBLIC,
    "PAGE /docs/api/{tag}": Rule(may=May.ANY_CALLER, names={"tag": "sessions"}),
    "PAGE /agents": PUBLIC,
    "PAGE /agents/{owner}/{slug}": CARD,
    "PAGE /agents/{owner}/{slug}/standing": CARD,
    "PAGE /demos/a2a": Rule(may=May.ANY_CALLER, ok=(302,)),
    "PAGE /demos/a2a/": PUBLIC,
    "PAGE /llms.txt": PUBLIC,
    "PAGE /.well-known/agent-card.json": Rule(may=May.ANY_CALLER, ok=(404,)),
    "PAGE /extensions/agent-info/v1": PUBLIC,
    "PAGE /signin": Rule(may=May.ANY_CALLER, ok=(200, 302, 503)),
    "PAGE /signin/password": Rule(may=May.BY_HAND, test="test_forms_need_the_token_of_our_pages"),
    "PAGE /signin/passkey": Rule(may=May.BY_HAND, test="test_forms_need_the_token_of_our_pages"),
    "PAGE /signin/passkey/options": Rule(may=May.BY_HAND, test="test_forms_need_the_token_of_our_pages"),
    "PAGE /join/{token}": Rule(may=May.BY_HAND, test="test_used_expired_revoked_and_absent_links_look_the_same"),
    "PAGE /invitations": Rule(may=May.BY_HAND, test="test_the_page_is_for_the_staff_alone"),
    "PAGE /invitations/{invitation_id}/revoke": Rule(may=May.BY_HAND, test="test_the_page_is_for_the_staff_alone"),
    "PAGE /connect.pyz": PUBLIC,
    "PAGE /signout": Rule(may=May.BY_HAND, test="test_signing_out_ends_the_session_on_the_hub"),
    "PAGE /.well-known/oauth-authorization-server": PUBLIC,
    "PAGE /consent": Rule(may=May.ANY_CALLER, ok=(302, 400)),
    "PAGE /device": Rule(may=May.BROWSER),
    "PAGE /account": Rule(may=May.BROWSER),
    "PAGE /questions": Rule(may=May.BROWSER),
    "PAGE /desk": Rule(may=May.BROWSER),
    "PAGE /desk/states": Rule(may=May.BY_HAND, test="test_pages_of_ones_own_are_for_browsers_that_are_signed_in"),
    "PAGE /desk/alerts": Rule(may=May.BROWSER),
    "PAGE /desk/bulk": Rule(may=May.BROWSER),
    "PAGE /desk/costs": Rule(may=May.BROWSER),
    "PAGE /desk/costs.csv": Rule(may=May.BROWSER),
    "PAGE /desk/publish": Rule(may=May.BROWSER),
    "PAGE /desk/connect": Rule(may=May.BROWSER),
    "PAGE /desk/remote": Rule(may=May.BROWSER),
    "PAGE /desk/agents/{agent_id}/remote": Rule(may=May.BY_HAND, test="test_a_server_is_its_owners_alone"),
    "PAGE /desk/agents/{agent_id}": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/delete": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/published": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/audit": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/audit.csv": OWN_PAGE,
    "PAGE /desk/connect/{credential_id}": OWN_PAGE,
    "PAGE /desk/connect/{credential_id}/state": OWN_PAGE,
    "PAGE /desk/sessions/{public_id}": Rule(may=May.OWN_PAGE, least_rank=1),
    "PAGE /desk/sessions/{public_id}/rows": Rule(may=May.OWN_PAGE, least_rank=1),
    "PAGE /desk/sessions/{public_id}/files": Rule(may=May.OWN_PAGE, least_rank=1),
    "PAGE /desk/sessions/{public_id}/archive": OWN_PAGE,
    "PAGE /desk/sessions/{public_id}/delete": OWN_PAGE,
    "PAGE /desk/sessions/{public_id}/share": OWN_PAGE,
    "PAGE /desk/sessions/{public_id}/unshare": OWN_PAGE,
    "PAGE /desk/team": Rule(may=May.BROWSER),
    "PAGE /desk/team/rules": Rule(may=May.BROWSER),
    "PAGE /desk/team/agents/{agent_name}": OWN_PAGE,
    "PAGE /desk/team/proposals/{proposal_id}": OWN_PAGE,
    "PAGE /desk/network": Rule(may=May.BROWSER),
    "PAGE /desk/network/venues": Rule(may=May.BROWSER),
    "PAGE /desk/network/venues.csv": Rule(may=May.BROWSER),
    "PAGE /desk/network/venues/import": Rule(may=May.BROWSER),
    "PAGE /desk/network/venues/new": Rule(may=May.BROWSER),
    "PAGE /desk/network/venues/{venue_id}": OWN_PAGE,
    "PAGE /desk/network/keys": Rule(may=May.BROWSER),
    "PAGE /desk/network/keys/{api_key_id}": OWN_PAGE,
    "PAGE /desk/network/bookings": Rule(may=May.BROWSER),
    "PAGE /desk/network/bookings/{booking_id}": OWN_PAGE,
    "PAGE /desk/network/revenue": Rule(may=May.BROWSER),
    "PAGE /desk/network/log": Rule(may=May.BROWSER),
    "PAGE /desk/network/rules": Rule(may=May.BROWSER),
    "PAGE /demos/agnt/": PUBLIC,
    "GET /agent-status": OF_TEAM,
    "GET /agent-status/{agent_name}": OF_TEAM,
    "PAGE /webhooks": Rule(may=May.BROWSER),
    "PAGE /webhooks/{webhook_id}": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/delete": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/deliveries": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/deliveries/{delivery_id}": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/edit": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/pause": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/replay": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/resume": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/roll-secret": OWN_PAGE,
    "PAGE /webhooks/{webhook_id}/test": OWN_PAGE,
    "PAGE /health": Rule(may=May.BY_HAND, test="test_the_hubs_health_is_for_the_staff"),
    "PAGE /limits": Rule(may=May.BY_HAND, test="test_the_hubs_health_is_for_the_staff"),
    "PAGE /account/export": Rule(may=May.BROWSER),
    "PAGE /account/erase": Rule(may=May.BROWSER),
    "PAGE /account/retention": Rule(may=May.BY_HAND, test="test_the_account_page_says_how_long"),
    "PAGE /account/rotate/{credential_id}": Rule(may=May.BY_HAND, test="test_the_account_page_makes_and_replaces"),
    "PAGE /account/revoke/{credential_id}": Rule(
        may=May.BY_HAND, test="test_the_account_page_revokes_ones_own_only"
    ),
    "PAGE /admin": Rule(may=May.ANY_CALLER, ok=(302,)),
    "PAGE /admin/…": Rule(may=May.BY_HAND, test="test_the_desk_shows_ones_own_rows_only"),
}

FRAMES: dict[str, Rule] = {
    "/cli subscribe": Rule(may=May.VIEWER, body={"sessionId": "{public_id}"}),
    "/cli unsubscribe": Rule(may=May.SIGNED_IN, body={"sessionId": "{public_id}"}),
    "/cli prompt": Rule(may=May.PROMPTER, body={"sessionId": "{public_id}", "text": "hi"}, asks=True),
    "/cli op_message": Rule(may=May.PROMPTER, body={"sessionId": "{public_id}", "text": "hi"}),
    "/cli approval": Rule(
        may=May.APPROVER,
        body={"sessionId": "{public_id}", "requestId": "{request_id}", "decision": "allow"},
        writes=True,
    ),
    "/cli route": Rule(may=May.PROMPTER, body={"peer": "{peer}", "prompt": "hi", "mode": "tell"}, asks=True),
    "/channel register": Rule(may=May.BY_HAND, test="test_no_user_registers_as_another_users_session"),
    "/channel pong": Rule(may=May.BY_HAND, test="test_only_channel_tokens_open_the_agents_socket"),
    "/channel chat_event": Rule(may=May.BY_HAND, test="test_no_user_answers_what_another_agent_was_asked"),
    "/channel tail_event": Rule(may=May.BY_HAND, test="test_only_channel_tokens_open_the_agents_socket"),
    "/channel list_agents_request": Rule(may=May.BY_HAND, test="test_an_agent_lists_what_its_owner_may_ask"),
    "/channel list_peers_request": Rule(may=May.BY_HAND, test="test_an_agent_lists_what_its_owner_may_ask"),
    "/channel route_request": Rule(may=May.BY_HAND, test="test_an_agent_reaches_what_its_owner_may_ask"),
    "/channel dispatch_request": Rule(may=May.BY_HAND, test="test_an_agent_reaches_what_its_owner_may_ask"),
    "/channel probe_request": Rule(may=May.BY_HAND, test="test_an_agent_reaches_what_its_owner_may_ask"),
    "/channel permission_request": Rule(
        may=May.BY_HAND, test="test_a_request_for_leave_is_of_the_asking_session_alone"
    ),
}

BELOW = "/api/a2a/v1/agents/{owner}/{slug}"
PUSHES = f"{BELOW}/tasks/{{task_id}}/pushNotificationConfigs"
ASKED_OVER_HTTP = Rule(may=May.BY_HAND, test="test_who_asks_over_http_json")
TASK_OVER_HTTP = Rule(may=May.BY_HAND, test="test_what_is_below_a_task_is_its_callers_alone")
HTTP_JSON: dict[str, Rule] = {
    f"POST {BELOW}/message:send": ASKED_OVER_HTTP,
    f"POST {BELOW}/message:stream": ASKED_OVER_HTTP,
    f"GET {BELOW}/tasks": Rule(may=May.BY_HAND, test="test_tasks_are_listed_to_their_caller_alone"),
    f"GET {BELOW}/tasks/{{task_id}}": TASK_OVER_HTTP,
    f"POST {BELOW}/tasks/{{task_id}}:cancel": TASK_OVER_HTTP,
    f"POST {BELOW}/tasks/{{task_id}}:subscribe": TASK_OVER_HTTP,
    f"GET {BELOW}/tasks/{{task_id}}:subscribe": TASK_OVER_HTTP,
    f"POST {PUSHES}": TASK_OVER_HTTP,
    f"GET {PUSHES}": TASK_OVER_HTTP,
    f"GET {PUSHES}/{{config_id}}": TASK_OVER_HTTP,
    f"DELETE {PUSHES}/{{config_id}}": TASK_OVER_HTTP,
    f"GET {BELOW}/extendedAgentCard": Rule(may=May.BY_HAND, test="test_who_reaches_an_agent_over_http_json"),
}

REST: dict[str, Rule] = SESSIONS | ASKING | AGENTS | TEAMS | ACCOUNTS | ADMINISTRATION | WEBHOOKS | CHANNEL_REST
REST |= GATEWAY_REST | OF_A_NETWORK
RULES: dict[str, Rule] = REST | BRIDGE | HTTP_JSON | MCP | CHAT | ENVELOPES | PAGES | FRAMES
