"""Agents with limited access, and the bridge: by each caller, on every surface that names a handle."""

import itertools

import pytest

from lab.callers import bearer
from lab.waiting import until
from tests.tenancy.dialect_requests import (
    AGENT_REQUESTS,
    CREATE_PUSH,
    LIST,
    LIST_PUSHES,
    LIST_TASKS,
    READ,
    SEND,
    AddressRequest,
    AgentRequest,
)
from tests.tenancy.test_matrix import CANARY
from tests.tenancy.web import Answer
from tests.tenancy.world import World

SEES = {"limited": {"olga", "olga app", "gwen"}, "private": {"olga", "olga app"}, "draft": {"olga", "olga app"}}

PUBLIC = "olga/pub-main"


def handle_of(tenants: World, kind: str) -> str:
    """A hidden agent's handle; a handle that no agent has for `absent`."""
    return f"olga/{tenants.main.get(f'{kind} slug', 'unknown-has-it')}"


def kinds(*, is_asking: bool) -> list[str]:
    """The kinds of hidden agents that a call is tried with: one function finds the agent of every call."""
    return [*SEES] if is_asking else ["limited"]


def get(tenants: World, path: str, caller: str) -> Answer:
    """One GET by a caller."""
    token = tenants.tokens.get(caller)
    return tenants.web.get(path, headers=bearer(token) if token else {})


def ask(
    tenants: World, handle: str, caller: str, spoken: AgentRequest = SEND, task_id: str = "task-none"
) -> Answer:
    """One call about an agent, made again while the agent is busy with another caller's."""
    token = tenants.tokens.get(caller)

    def free() -> Answer | None:
        answer = spoken.send(tenants.web, handle, task_id, bearer(token) if token else {})
        return None if "processing a turn for another caller" in answer.text else answer

    return until(free, f"{handle} is free", within_s=20)


def bare(answer: Answer, handle: str) -> tuple[int, str]:
    """A refusal without the handle it was about."""
    assert not CANARY.search(answer.text), answer.text
    return answer.status_code, answer.text.replace(handle, "<handle>").replace(handle.partition("/")[2], "<slug>")


@pytest.mark.parametrize("path", ["/api/v1/agents/by-handle/{}", "/api/a2a/v1/agents/{}/agent-card.json"])
def test_who_sees_an_agent_that_is_not_public(tenants: World, path: str) -> None:
    absent_handle, is_card = handle_of(tenants, "absent"), "card" in path
    for caller in [*tenants.operators, *tenants.refused]:
        absent = bare(get(tenants, path.format(absent_handle), caller), absent_handle)
        assert absent[0] == (401 if caller in tenants.refused and not is_card else 404), caller
        for kind in SEES:
            handle = handle_of(tenants, kind)
            answer = get(tenants, path.format(handle), caller)
            if caller in SEES[kind] and not (is_card and kind == "draft"):
                assert answer.status_code == 200, (kind, caller, answer.text)
            else:
                assert bare(answer, handle) == absent, (kind, caller)


@pytest.mark.parametrize("path", ["/agents/{}", "/agents/{}/standing"])
def test_who_visits_the_page_of_an_agent_that_is_not_public(tenants: World, path: str) -> None:
    for caller, kind in itertools.product([*tenants.operators, *tenants.refused], ("absent", *SEES)):
        token = tenants.tokens.get(caller)
        headers = {"Cookie": f"cw_session={token}"} if token else {}
        answer = tenants.web.get(path.format(handle_of(tenants, kind)), headers=headers)
        may = caller in SEES.get(kind, set()) - {"olga app"} and kind != "draft"
        assert answer.status_code == (200 if may else 404), (kind, caller)
        read = set(CANARY.findall(answer.text))
        assert caller == "olga" or read <= ({"canary-guest"} if caller == "gwen" else set()), (kind, caller)


def test_lists_hold_only_what_their_reader_may_ask(tenants: World) -> None:
    for caller in tenants.operators:
        mine = get(tenants, "/api/v1/agents?mine=true", caller).json()["items"]
        assert {one["ownerLogin"] for one in mine} <= {caller.split()[0]}, caller
        listed = get(tenants, "/api/v1/agents", caller).json()["items"]
        handles = {one["handle"] for one in [*listed, *mine]}
        seen = {kind for kind in SEES if handle_of(tenants, kind) in handles}
        assert seen == {kind for kind, who in SEES.items() if caller in who}, caller
        assert "gus/pub-gone" not in handles, "its owner is suspended"
        assert "olga/pub-main" in handles


@pytest.mark.parametrize("spoken", AGENT_REQUESTS, ids=str)
def test_who_reaches_an_agent_by_any_method_or_address(tenants: World, spoken: AgentRequest) -> None:
    """Each by each caller with a limited agent; those that ask with the other kinds too."""
    assert get(tenants, "/.well-known/jwks.json", "").status_code == 200  # the first card would make the hub's key
    absent_handle, before = handle_of(tenants, "absent"), tenants.changes.mark()
    absent = bare(ask(tenants, absent_handle, "", spoken), absent_handle)
    assert absent[0] == 404
    for kind, caller in itertools.product(kinds(is_asking=spoken.asks), [*tenants.operators, *tenants.refused]):
        handle = handle_of(tenants, kind)
        answer = ask(tenants, handle, caller, spoken)
        if caller in SEES[kind] and kind != "draft":
            assert spoken.reaches(answer), (kind, caller, answer.text)
        else:
            assert bare(answer, handle) == absent, (kind, caller)
    tenants.changes.check_none(before)


@pytest.mark.parametrize("spoken", [one for one in AGENT_REQUESTS if one.asks], ids=str)
def test_who_asks_over_the_bridge(tenants: World, spoken: AgentRequest) -> None:
    for caller in tenants.operators:
        answer = ask(tenants, PUBLIC, caller, spoken)
        assert answer.status_code == 200
        assert ("failed" in answer.text.lower()) == (caller == "blake"), (caller, answer.text)
        assert ("echo: what's" in answer.text) == (caller != "blake"), (caller, answer.text)
    for caller in tenants.refused:
        assert ask(tenants, PUBLIC, caller, spoken).status_code == 401, caller


def test_an_agent_of_the_suspended_is_gone_for_all(tenants: World) -> None:
    absent_handle = handle_of(tenants, "absent")
    absent = bare(ask(tenants, absent_handle, ""), absent_handle)
    for caller in tenants.operators:
        assert bare(ask(tenants, "gus/pub-gone", caller), "gus/pub-gone") == absent, caller


def told(answer: Answer, task_id: str) -> tuple[int, str]:
    """An answer without the task it was about."""
    return answer.status_code, answer.text.replace(task_id, "<id>")


def test_a_task_and_what_is_below_it_is_its_callers_alone(tenants: World) -> None:
    task_id = ask(tenants, PUBLIC, "gwen").json()["result"]["id"]
    kept = ask(tenants, PUBLIC, "gwen", CREATE_PUSH, task_id)
    assert kept.status_code == 200, kept.text
    before = tenants.changes.mark()
    for spoken in [one for one in AGENT_REQUESTS if one.names_a_task]:
        absent = told(ask(tenants, PUBLIC, "stan", spoken), "task-none")
        assert spoken.no_task in absent[1], spoken
        for caller in [one for one in tenants.operators if one != "gwen"]:
            assert told(ask(tenants, PUBLIC, caller, spoken, task_id), task_id) == absent, (spoken, caller)
        for caller in tenants.refused:
            assert ask(tenants, PUBLIC, caller, spoken, task_id).status_code == 401, (spoken, caller)
    tenants.changes.check_none(before)
    assert ask(tenants, PUBLIC, "gwen", LIST_PUSHES, task_id).json()["configs"] == [kept.json()]
    read = ask(tenants, PUBLIC, "gwen", READ, task_id)
    assert read.json()["result"]["status"]["state"] == "COMPLETED"


@pytest.mark.parametrize("spoken", [LIST, LIST_TASKS], ids=str)
def test_a_list_of_tasks_is_its_callers_alone(tenants: World, spoken: AgentRequest) -> None:
    task = ask(tenants, PUBLIC, "gwen").json()["result"]["id"]
    for caller in tenants.operators:
        listed = ask(tenants, PUBLIC, caller, spoken).json()
        assert (task in [one["id"] for one in listed.get("result", listed)["tasks"]]) == (caller == "gwen"), caller
    for caller in tenants.refused:
        for one in (spoken, AddressRequest("GET", "extendedAgentCard")):
            assert ask(tenants, PUBLIC, caller, one).status_code == 401, (one, caller)
