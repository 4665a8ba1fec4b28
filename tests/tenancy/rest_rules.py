"""The rights of callers over REST: one line for every address. See `rules.py`."""

from dataclasses import replace

from tests.tenancy.rights import May, Rule

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
GROUP = Rule(may=May.BY_HAND, test="test_a_group_is_absent_for_others_by_rest")
ACCOUNT = f"{V}/admin/accounts/{{account}}"
OF_STAFF = Rule(may=May.BY_HAND, test="test_accounts_are_for_the_staff_alone")

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
    # Of a file of a session's operator; tests/native/test_question_files.py has previews of files of questions.
    f"GET {V}/files/{{file_id}}/preview": Rule(may=May.VIEWER, ok=(404,)),
    f"GET {V}/files": Rule(may=May.SIGNED_IN),
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

ONES_THREAD = Rule(may=May.BY_HAND, test="test_a_thread_of_another_caller_is_absent")
RATED = Rule(may=May.BY_HAND, test="test_an_answer_of_another_caller_a_failure_and_no_answer_look_alike")

ASKING: dict[str, Rule] = {
    f"POST {V}/files": Rule(
        may=May.BY_HAND, test="test_a_token_for_asking_one_agent_uploads_and_a_reading_one_does_not"
    ),
    f"POST {S}/prompt": Rule(may=May.PROMPTER, body={"text": "hi"}, asks=True),
    f"POST {V}/peers/{{peer}}/route": Rule(may=May.PROMPTER, body={"prompt": "hi", "mode": "ask"}, asks=True),
    f"POST {V}/peers/probe": Rule(may=May.SIGNED_IN, body={"prompt": "hi", "peers": ["unknown/nothing"]}),
    f"GET {V}/peers": Rule(may=May.SIGNED_IN),
    f"GET {V}/questions": Rule(may=May.SIGNED_IN),
    f"GET {V}/shares": Rule(may=May.SIGNED_IN),
    f"POST {V}/shares": Rule(may=May.BY_HAND, test="test_what_cannot_be_shared_is_named"),
    f"GET {V}/shares/received": Rule(may=May.SIGNED_IN),
    f"GET {V}/shares/{{share_id}}": Rule(may=May.MINE),
    f"DELETE {V}/shares/{{share_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"GET {V}/shared-links/{{token}}": Rule(
        may=May.BY_HAND, test="test_a_link_shows_the_answer_until_it_ends_and_then_looks_like_none"
    ),
    f"GET {V}/questions/{{ask_id}}": Rule(may=May.BY_HAND, test="test_who_reads_an_ask_and_as_whom"),
    f"GET {V}/questions/{{chat_id}}/rating": RATED,
    f"PUT {V}/questions/{{chat_id}}/rating": replace(RATED, body={"rating": "up"}),
    f"DELETE {V}/questions/{{chat_id}}/rating": RATED,
    f"POST {V}/questions/{{ask_id}}/problem": Rule(
        may=May.BY_HAND, body={"text": "wrong"}, test="test_who_reports_a_problem"
    ),
    f"GET {V}/threads": Rule(
        may=May.BY_HAND, test="test_words_are_found_in_questions_answers_and_titles_of_the_caller_alone"
    ),
    f"GET {V}/threads/{{thread_id}}": ONES_THREAD,
    f"PATCH {V}/threads/{{thread_id}}": replace(ONES_THREAD, body={"title": "theirs"}),
    f"DELETE {V}/threads/{{thread_id}}": ONES_THREAD,
    f"GET {V}/threads/{{thread_id}}/export": ONES_THREAD,
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
    f"POST {V}/agents/{{agent_id}}/card-change": Rule(
        may=May.BY_HAND, body={"digest": "0" * 64, "decision": "approve"}, test="test_an_owner_decides_by_rest"
    ),
    f"GET {V}/agents/{{agent_id}}/inbound": Rule(may=May.MINE),
    f"GET {V}/agents/{{agent_id}}/rating": Rule(may=May.MINE),
    f"GET {V}/agents/{{agent_id}}/ratings": Rule(may=May.MINE),
    f"GET {V}/agents/{{agent_id}}/threads": Rule(may=May.MINE),
    f"POST {V}/agents/{{agent_id}}/halt": Rule(may=May.MINE, body={}, ok=(200, 201), writes=True),
    f"DELETE {V}/agents/{{agent_id}}/halt": Rule(may=May.MINE, ok=(204,), writes=True),
    f"GET {V}/blocks": Rule(may=May.SIGNED_IN),
    f"POST {V}/blocks": Rule(may=May.SIGNED_IN, body={"login": "gus"}, ok=(200, 201)),
    f"DELETE {V}/blocks/{{login}}": Rule(may=May.SIGNED_IN, names={"login": "zoe"}),
}

FAILURES: dict[str, Rule] = {
    f"GET {V}/failures": Rule(may=May.SIGNED_IN),
    f"GET {V}/failures/{{failure_id}}": Rule(may=May.MINE),
    f"PATCH {V}/failures/{{failure_id}}": Rule(may=May.MINE, body={"state": "ignored"}, writes=True),
    f"GET {V}/favourites": Rule(may=May.SIGNED_IN),
    f"PUT {V}/favourites/{{owner}}/{{slug}}": Rule(may=May.BY_HAND, test="test_rest_marks_agents"),
    f"DELETE {V}/favourites/{{owner}}/{{slug}}": Rule(may=May.BY_HAND, test="test_rest_marks_agents"),
    f"GET {V}/alert-rules": Rule(may=May.SIGNED_IN),
    f"PUT {V}/alert-rules/{{kind}}": Rule(may=May.SIGNED_IN, body={"threshold": 9}),
    f"DELETE {V}/alert-rules/{{kind}}": Rule(may=May.SIGNED_IN, ok=(204,)),
}

ONES_SET = Rule(may=May.BY_HAND, test="test_a_set_of_another_owner_is_absent")
EVALUATIONS: dict[str, Rule] = {
    f"GET {V}/evaluations": Rule(may=May.SIGNED_IN),
    f"POST {V}/evaluations": Rule(may=May.BY_HAND, test="test_a_set_of_another_form_is_refused"),
    f"GET {V}/evaluations/{{set_id}}": ONES_SET,
    f"PATCH {V}/evaluations/{{set_id}}": replace(ONES_SET, body={"name": "theirs"}),
    f"DELETE {V}/evaluations/{{set_id}}": ONES_SET,
    f"GET {V}/evaluations/{{set_id}}/runs": ONES_SET,
    f"POST {V}/evaluations/{{set_id}}/runs": replace(ONES_SET, body={}),
    f"GET {V}/evaluations/{{set_id}}/runs/{{run_id}}": ONES_SET,
    f"POST {V}/evaluations/{{set_id}}/runs/{{run_id}}/stop": replace(ONES_SET, body={}),
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
    f"GET {V}/groups": Rule(may=May.SIGNED_IN),
    f"POST {V}/groups": Rule(may=May.BY_HAND, test="test_a_group_is_made_and_changed_by_rest"),
    f"GET {V}/groups/{{group_slug}}": GROUP,
    f"PATCH {V}/groups/{{group_slug}}": replace(GROUP, body={"name": "theirs"}),
    f"GET {V}/groups/{{group_slug}}/members": GROUP,
    f"PUT {V}/groups/{{group_slug}}/members/{{login}}": replace(GROUP, body={"role": "auditor"}),
    f"DELETE {V}/groups/{{group_slug}}/members/{{login}}": GROUP,
    f"GET {V}/groups/{{group_slug}}/invitations": GROUP,
    f"POST {V}/groups/{{group_slug}}/invitations": replace(GROUP, body={}),
    f"DELETE {V}/groups/{{group_slug}}/invitations/{{invitation_id}}": GROUP,
    f"POST {V}/groups/{{group_slug}}/tokens": replace(GROUP, body={"name": "theirs", "kind": "app"}),
    f"DELETE {V}/groups/{{group_slug}}/account": GROUP,
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
    f"GET {V}/admin/log": ADMIN,
    f"GET {V}/admin/log/export": ADMIN,
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
    f"GET {ACCOUNT}": OF_STAFF,
    f"PATCH {ACCOUNT}": OF_STAFF,
    f"GET {ACCOUNT}/sessions": OF_STAFF,
    f"DELETE {ACCOUNT}/sessions": OF_STAFF,
    f"GET {ACCOUNT}/tokens": OF_STAFF,
    f"DELETE {ACCOUNT}/tokens": OF_STAFF,
    f"DELETE {ACCOUNT}/credentials/{{credential_id}}": OF_STAFF,
    f"GET {ACCOUNT}/clients": OF_STAFF,
    f"DELETE {ACCOUNT}/clients/{{grant_id}}": OF_STAFF,
    f"GET {ACCOUNT}/groups": OF_STAFF,
    f"PUT {ACCOUNT}/groups/{{group_slug}}": OF_STAFF,
    f"DELETE {ACCOUNT}/groups/{{group_slug}}": OF_STAFF,
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
    f"GET {N}/venues/{{venue_id}}/secret": Rule(may=May.MINE),
    f"POST {N}/venues/{{venue_id}}/secret": Rule(may=May.MINE, body={}, writes=True),
    f"GET {N}/keys": Rule(may=May.SIGNED_IN),
    f"POST {N}/keys": Rule(may=May.SIGNED_IN, body={"name": "new"}, ok=(201,)),
    f"PATCH {N}/keys/{{api_key_id}}": Rule(may=May.MINE, body={"tier": "pro"}, writes=True),
    f"DELETE {N}/keys/{{api_key_id}}": Rule(may=May.MINE, ok=(204,), writes=True),
    f"POST {N}/keys/{{api_key_id}}/rotate-secret": Rule(may=May.MINE, body={}, writes=True),
    f"GET {N}/bookings": Rule(may=May.SIGNED_IN),
    f"GET {N}/bookings/{{booking_id}}": Rule(may=May.MINE),
    f"PATCH {N}/bookings/{{booking_id}}": Rule(may=May.MINE, body={"status": "confirmed"}, writes=True),
    f"GET {N}/usage": Rule(may=May.SIGNED_IN),
    f"GET {N}/cancellations": Rule(may=May.SIGNED_IN),
    f"POST {N}/cancellations/{{booking_id}}/retry": Rule(may=May.MINE, body={}, writes=True),
    f"GET {N}/interactions": Rule(may=May.SIGNED_IN),
}

CHANNEL_REST: dict[str, Rule] = {
    "POST /api/channel/event": Rule(may=May.AGENT, body=HOOK_EVENT, ok=(202,), writes=True),
    "POST /api/channel/files": Rule(may=May.AGENT, form=True, ok=(201,), writes=True),
    "GET /api/channel/files/{file_id}": Rule(may=May.AGENT, query="?sessionId={public_id}"),
}

REST: dict[str, Rule] = SESSIONS | ASKING | AGENTS | TEAMS | ACCOUNTS | ADMINISTRATION | WEBHOOKS | CHANNEL_REST
REST |= FAILURES | EVALUATIONS | GATEWAY_REST | OF_A_NETWORK
