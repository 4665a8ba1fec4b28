"""Rights of callers: one line for every address, operation, frame and method of the hub; REST: `rest_rules.py`.

`test_rules.py` fails when one of them has no line here, or a line here has lost what it is about.
"""

from tests.tenancy.gateway_rules import GATEWAY
from tests.tenancy.rest_rules import REST
from tests.tenancy.rights import May, Rule

PUBLIC = Rule(may=May.ANY_CALLER)
OWN_PAGE = Rule(may=May.OWN_PAGE)
CARD = Rule(may=May.SEES_CARD)
OF_AGENT = Rule(may=May.BY_HAND, test="test_who_reaches_an_agent_by_any_method_or_address")
ASKED = Rule(may=May.ASKS_AGENT)
ONES_TASK = Rule(may=May.BY_HAND, test="test_a_task_and_what_is_below_it_is_its_callers_alone")
RATED_TASK = Rule(may=May.BY_HAND, test="test_what_cannot_be_rated_is_an_error")
ONES_THREAD = Rule(may=May.BY_HAND, test="test_no_page_shows_a_thread_of_another_user")
ONES_SET = Rule(may=May.BY_HAND, test="test_a_set_of_another_owner_is_absent")
BRIDGE: dict[str, Rule] = {
    "GET /api/a2a/v1/agents/{owner}/{slug}/agent-card.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/.well-known/agent-card.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/.well-known/agent.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/{given}/.well-known/agent-card.json": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/core": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/v1": CARD,
    "GET /api/a2a/v1/agents/{owner}/{slug}/usage.md": CARD,
    "GET /.well-known/ai-catalog.json": PUBLIC,
    "GET /.well-known/ard.json": PUBLIC,
    "GET /.well-known/jwks.json": PUBLIC,
    "POST /api/a2a/v1/agents/{owner}/{slug}": Rule(may=May.BY_HAND, test="test_who_asks_over_the_bridge"),
    "METHOD hub SendMessage": ASKED,
    "METHOD hub SendStreamingMessage": ASKED,
    "METHOD hub GetTask": ONES_TASK,
    "METHOD hub RateTask": RATED_TASK,
    "METHOD 0.3 message/send": ASKED,
    "METHOD 0.3 message/stream": ASKED,
    "METHOD 0.3 tasks/get": ONES_TASK,
    "METHOD 0.3 tasks/cancel": ONES_TASK,
    "METHOD 0.3 tasks/rate": RATED_TASK,
    "METHOD 0.3 tasks/resubscribe": ONES_TASK,
    "METHOD 0.3 agent/getAuthenticatedExtendedCard": OF_AGENT,
    "METHOD 1.0 SendMessage": ASKED,
    "METHOD 1.0 SendStreamingMessage": ASKED,
    "METHOD 1.0 GetTask": ONES_TASK,
    "METHOD 1.0 ListTasks": Rule(may=May.BY_HAND, test="test_a_list_of_tasks_is_its_callers_alone"),
    "METHOD 1.0 CancelTask": ONES_TASK,
    "METHOD 1.0 RateTask": RATED_TASK,
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
    "TOOL rate_answer": Rule(may=May.BY_HAND, test="test_an_answer_is_rated_by_a_tool"),
    "TOOL cancel_task": Rule(may=May.BY_HAND, test="test_a_task_is_its_callers_alone_by_tools"),
}

CHAT: dict[str, Rule] = {
    "POST /v1/chat/completions": Rule(may=May.BY_HAND, test="test_who_may_ask_and_list_models"),
    "POST /v1/responses": Rule(may=May.BY_HAND, test="test_who_may_continue_a_response"),
    "GET /v1/responses/{response_id}": Rule(
        may=May.BY_HAND, test="test_a_response_is_read_while_its_task_is_kept"
    ),
    "GET /v1/models": Rule(may=May.BY_HAND, test="test_who_may_ask_and_list_models"),
    "GET /v1/models/{model}": Rule(may=May.BY_HAND, test="test_who_may_ask_and_list_models"),
}

OF_ITS_NETWORK = Rule(may=May.BY_HAND, test="test_venues_of_another_network_are_as_absent_as_those_that_are_not")
OF_ITS_KEY = Rule(may=May.BY_HAND, test="test_webhooks_of_others_are_as_absent_as_those_that_are_not")
ENVELOPES: dict[str, Rule] = {
    "POST /a2a/v1": OF_ITS_NETWORK,
    "GET /a2a/v1/status": Rule(
        may=May.BY_HAND, test="test_the_breaker_of_a_network_is_told_to_its_own_keys_alone"
    ),
    "GET /network/venues": OF_ITS_NETWORK,
    "GET /network/webhooks": OF_ITS_KEY,
    "POST /network/webhooks": OF_ITS_KEY,
    "GET /network/webhooks/{webhook_id}": OF_ITS_KEY,
    "PATCH /network/webhooks/{webhook_id}": OF_ITS_KEY,
    "DELETE /network/webhooks/{webhook_id}": OF_ITS_KEY,
    "POST /network/webhooks/{webhook_id}/test": OF_ITS_KEY,
    "POST /network/webhooks/{webhook_id}/roll-secret": OF_ITS_KEY,
}

OF_TEAM = Rule(may=May.BY_HAND, test="test_the_health_of_a_team_is_its_owners_alone")
PAGES: dict[str, Rule] = {
    "GET /livez": PUBLIC,
    "GET /readyz": PUBLIC,
    "GET /metrics": PUBLIC,  # from this machine: tests/deploy
    "GET /api/v1/schema": PUBLIC,
    "GET /api/ws-docs/json": PUBLIC,
    "GET /api/ws-docs/yaml": PUBLIC,
    "PAGE /": PUBLIC,
    "PAGE /docs": PUBLIC,
    "PAGE /docs/{name}": Rule(may=May.ANY_CALLER, names={"name": "errors"}),
    "PAGE /docs/api": PUBLIC,
    "PAGE /docs/api/{tag}": Rule(may=May.ANY_CALLER, names={"tag": "sessions"}),
    "PAGE /agents": PUBLIC,
    "PAGE /palette": PUBLIC,
    "PAGE /agents/{owner}/{slug}": CARD,
    "PAGE /agents/{owner}/{slug}/standing": CARD,
    "PAGE /agents/{owner}/{slug}/favourite": Rule(
        may=May.BY_HAND, test="test_a_visitor_marks_agents_and_sees_the_marked"
    ),
    "PAGE /demos/a2a": Rule(may=May.ANY_CALLER, ok=(302,)),
    "PAGE /demos/a2a/": PUBLIC,
    "PAGE /demos/a2a/agents": PUBLIC,
    "PAGE /llms.txt": PUBLIC,
    "PAGE /.well-known/agent-card.json": Rule(may=May.ANY_CALLER, ok=(404,)),
    "PAGE /extensions/agent-info/v1": PUBLIC,
    "PAGE /extensions/rating/v1": PUBLIC,
    "PAGE /scim/v2": Rule(may=May.BY_HAND, test="test_no_other_token_opens_scim"),
    "PAGE /scim/v2/{rest}": Rule(may=May.BY_HAND, test="test_no_other_token_opens_scim"),
    "PAGE /signin": Rule(may=May.ANY_CALLER, ok=(200, 302, 503)),
    "PAGE /signin/password": Rule(may=May.BY_HAND, test="test_forms_need_the_token_of_our_pages"),
    "PAGE /signin/passkey": Rule(may=May.BY_HAND, test="test_forms_need_the_token_of_our_pages"),
    "PAGE /signin/passkey/options": Rule(may=May.BY_HAND, test="test_forms_need_the_token_of_our_pages"),
    "PAGE /join/{token}": Rule(may=May.BY_HAND, test="test_used_expired_revoked_and_absent_links_look_the_same"),
    "PAGE /invitations": Rule(may=May.BY_HAND, test="test_the_page_is_for_the_staff_alone"),
    "PAGE /invitations/{invitation_id}/revoke": Rule(may=May.BY_HAND, test="test_the_page_is_for_the_staff_alone"),
    "PAGE /staff/accounts/{login}": Rule(may=May.BY_HAND, test="test_accounts_are_for_the_staff_alone"),
    "PAGE /connect.pyz": PUBLIC,
    "PAGE /signout": Rule(may=May.BY_HAND, test="test_signing_out_ends_the_session_on_the_hub"),
    "PAGE /.well-known/oauth-authorization-server": PUBLIC,
    "PAGE /consent": Rule(may=May.ANY_CALLER, ok=(302, 400)),
    "PAGE /device": Rule(may=May.BROWSER),
    "PAGE /account": Rule(may=May.BROWSER),
    "PAGE /questions": Rule(may=May.BROWSER),
    "PAGE /shares": Rule(may=May.BROWSER),
    "PAGE /shares/{share_id}/end": Rule(may=May.BY_HAND, test="test_the_page_lists_what_one_shares_and_ends_it"),
    "PAGE /shared/{share_id}": Rule(may=May.BY_HAND, test="test_a_named_user_reads_the_answer_and_no_other_does"),
    "PAGE /s/{token}": Rule(
        may=May.BY_HAND, test="test_a_link_shows_the_answer_until_it_ends_and_then_looks_like_none"
    ),
    "PAGE /questions/{ask_id}": Rule(may=May.BY_HAND, test="test_the_page_is_for_those_who_may_read_the_ask"),
    "PAGE /questions/all": Rule(may=May.BROWSER),
    "PAGE /questions/threads/{thread_id}": ONES_THREAD,
    "PAGE /questions/threads/{thread_id}/change": ONES_THREAD,
    "PAGE /questions/threads/{thread_id}/export": ONES_THREAD,
    "PAGE /desk": Rule(may=May.BROWSER),
    "PAGE /desk/states": Rule(may=May.BY_HAND, test="test_pages_of_ones_own_are_for_browsers_that_are_signed_in"),
    "PAGE /desk/alerts": Rule(may=May.BROWSER),
    "PAGE /desk/bulk": Rule(may=May.BROWSER),
    "PAGE /desk/costs": Rule(may=May.BROWSER),
    "PAGE /desk/costs.csv": Rule(may=May.BROWSER),
    "PAGE /desk/failures": Rule(may=May.BROWSER),
    "PAGE /desk/failures/{failure_id}": OWN_PAGE,
    "PAGE /desk/evaluations": Rule(may=May.BROWSER),
    "PAGE /desk/evaluations/{set_id}": ONES_SET,
    "PAGE /desk/evaluations/{set_id}/settings": ONES_SET,
    "PAGE /desk/evaluations/{set_id}/questions/new": ONES_SET,
    "PAGE /desk/evaluations/{set_id}/questions/{question_id}": ONES_SET,
    "PAGE /desk/evaluations/{set_id}/runs/{run_id}": ONES_SET,
    "PAGE /desk/publish": Rule(may=May.BROWSER),
    "PAGE /desk/connect": Rule(may=May.BROWSER),
    "PAGE /desk/remote": Rule(may=May.BROWSER),
    "PAGE /groups": Rule(may=May.BY_HAND, test="test_a_group_is_absent_for_others_and_read_only_for_members"),
    "PAGE /groups/{slug}": Rule(
        may=May.BY_HAND, test="test_a_group_is_absent_for_others_and_read_only_for_members"
    ),
    "PAGE /groups/{slug}/export": Rule(
        may=May.BY_HAND, test="test_a_group_is_absent_for_others_and_read_only_for_members"
    ),
    "PAGE /groups/{slug}/erase": Rule(
        may=May.BY_HAND, test="test_a_group_is_absent_for_others_and_read_only_for_members"
    ),
    "PAGE /groups/join/{token}": Rule(may=May.BY_HAND, test="test_a_link_lets_one_user_join_once"),
    "PAGE /acting": Rule(may=May.BY_HAND, test="test_only_a_maintainer_acts_for_a_group"),
    "PAGE /desk/agents/{agent_id}/remote": Rule(may=May.BY_HAND, test="test_a_server_is_its_owners_alone"),
    "PAGE /desk/agents/{agent_id}": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/delete": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/published": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/audit": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/audit.csv": OWN_PAGE,
    "PAGE /desk/agents/{agent_id}/ratings": OWN_PAGE,
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
    "PAGE /files": Rule(may=May.BROWSER),
    "PAGE /files/{file_id}/delete": Rule(may=May.BY_HAND, test="test_the_page_lists_and_deletes_own_files_alone"),
    "PAGE /limits": Rule(may=May.BY_HAND, test="test_the_hubs_health_is_for_the_staff"),
    "PAGE /account/export": Rule(may=May.BROWSER),
    "PAGE /account/erase": Rule(may=May.BROWSER),
    "PAGE /account/retention": Rule(may=May.BY_HAND, test="test_the_account_page_says_how_long"),
    "PAGE /account/clients/{grant_id}/revoke": Rule(
        may=May.BY_HAND, test="test_the_account_page_revokes_ones_own_tokens_and_clients_only"
    ),
    "PAGE /account/rotate/{credential_id}": Rule(may=May.BY_HAND, test="test_the_account_page_makes_and_replaces"),
    "PAGE /account/revoke/{credential_id}": Rule(
        may=May.BY_HAND, test="test_the_account_page_revokes_ones_own_tokens_and_clients_only"
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
ASKED_OVER_HTTP = Rule(may=May.BY_HAND, test="test_who_asks_over_the_bridge")
HTTP_JSON: dict[str, Rule] = {
    f"POST {BELOW}/message:send": ASKED_OVER_HTTP,
    f"POST {BELOW}/message:stream": ASKED_OVER_HTTP,
    f"GET {BELOW}/tasks": Rule(may=May.BY_HAND, test="test_a_list_of_tasks_is_its_callers_alone"),
    f"GET {BELOW}/tasks/{{task_id}}": ONES_TASK,
    f"POST {BELOW}/tasks/{{task_id}}:cancel": ONES_TASK,
    f"POST {BELOW}/tasks/{{task_id}}:rate": RATED_TASK,
    f"POST {BELOW}/tasks/{{task_id}}:subscribe": ONES_TASK,
    f"GET {BELOW}/tasks/{{task_id}}:subscribe": ONES_TASK,
    f"POST {PUSHES}": ONES_TASK,
    f"GET {PUSHES}": ONES_TASK,
    f"GET {PUSHES}/{{config_id}}": ONES_TASK,
    f"DELETE {PUSHES}/{{config_id}}": ONES_TASK,
    f"GET {BELOW}/extendedAgentCard": OF_AGENT,
}

RULES: dict[str, Rule] = REST | BRIDGE | HTTP_JSON | MCP | CHAT | ENVELOPES | GATEWAY | PAGES | FRAMES
