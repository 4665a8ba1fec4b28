"""The rights of callers at the gateway: its addresses, frames, and the Agent Protocol; and tools of AGNT keys."""

from dataclasses import replace

from tests.tenancy.rights import May, Rule

AP = "/ap/v1/agent/tasks"
FRAMES_ABOUT_AGENTS = (
    "message",
    "status",
    "error",
    "event",
    "discovery",
    "subscribe",
    "unsubscribe",
    "workspace",
    "proposal",
    "vote",
    "request",
    "response",
    "broadcast",
)
TOOLS_OF_KEYS = ("agnt.ping", "agnt.list_venues", "agnt.search_venues", "agnt.confirm_booking")
TEAM = Rule(may=May.BY_HAND, test="test_an_agent_of_another_team_is_as_if_it_were_not_there")
MODEL = Rule(
    may=May.BY_HAND,
    body={"messages": [{"role": "user", "content": "hi"}]},
    test="test_what_is_anothers_is_as_absent_as_what_is_not_there",
)
ACL = Rule(may=May.BY_HAND, test="test_an_acl_message_reaches_no_agent_of_another_team")
ONES_TASK = Rule(may=May.BY_HAND, test="test_a_task_is_its_owners_alone")
SIGNS_IN = Rule(may=May.BY_HAND, test="test_each_surface_takes_its_tokens_and_no_others")
OF_ITS_NETWORK = Rule(may=May.BY_HAND, test="test_venues_of_another_network_are_as_absent_as_those_that_are_not")

GATEWAY: dict[str, Rule] = {
    "POST /api/v1/gateway/fipa": ACL,
    "POST /agent/{agent_name}": MODEL,
    "POST /agent/{agent_name}/chat/completions": MODEL,
    "POST /agent/{agent_name}/v1/chat/completions": MODEL,
    f"GET {AP}": ONES_TASK,
    f"POST {AP}": ONES_TASK,
    f"GET {AP}/{{task}}": ONES_TASK,
    f"GET {AP}/{{task}}/steps": ONES_TASK,
    f"POST {AP}/{{task}}/steps": replace(ONES_TASK, body={"input": "theirs"}),
    f"GET {AP}/{{task}}/steps/{{step}}": ONES_TASK,
    f"GET {AP}/{{task}}/artifacts": ONES_TASK,
    f"POST {AP}/{{task}}/artifacts": replace(ONES_TASK, form=True),
    f"GET {AP}/{{task}}/artifacts/{{artifact}}": ONES_TASK,
    **{f"/gateway {name}": TEAM for name in FRAMES_ABOUT_AGENTS},
    **{f"/gateway {name}": SIGNS_IN for name in ("auth", "handshake", "ping", "pong", "disconnect")},
    **{f"TOOL OF A KEY {name}": OF_ITS_NETWORK for name in TOOLS_OF_KEYS},
}
