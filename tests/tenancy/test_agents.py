"""Agents with limited access, and the bridge: by each caller, on every surface that names a handle."""

import pytest

from lab.callers import bearer, envelope
from lab.waiting import until
from tests.tenancy.dialect_requests import DIALECT_REQUESTS, LIST, READ, SEND, DialectRequest
from tests.tenancy.test_matrix import CANARY
from tests.tenancy.web import Answer
from tests.tenancy.world import World

SEES = {"limited": {"olga", "olga app", "gwen"}, "private": {"olga", "olga app"}, "draft": {"olga", "olga app"}}
EVERY_KIND = pytest.mark.parametrize("kind", SEES)


def handle_of(tenants: World, kind: str) -> str:
    """A hidden agent's handle; a handle that no agent has for `absent`."""
    return f"olga/{tenants.main.get(f'{kind} slug', 'unknown-has-it')}"


def get(tenants: World, path: str, caller: str) -> Answer:
    """One GET by a caller."""
    token = tenants.tokens.get(caller)
    return tenants.web.get(path, headers=bearer(token) if token else {})


def ask(
    tenants: World, handle: str, caller: str, spoken: DialectRequest = SEND, task_id: str = "task-none"
) -> Answer:
    """One call over the bridge, made again while the agent is busy with another caller's."""
    token = tenants.tokens.get(caller)
    body = envelope(spoken.method, spoken.params(task_id))
    headers = spoken.headers | (bearer(token) if token else {})

    def free() -> Answer | None:
        answer = tenants.web.post(f"/api/a2a/v1/agents/{handle}", json=body, headers=headers)
        return None if "processing a turn for another caller" in answer.text else answer

    return until(free, f"{handle} is free", within_s=20)


def bare(answer: Answer, handle: str) -> tuple[int, str]:
    """A refusal without the handle it was about."""
    assert not CANARY.search(answer.text), answer.text
    return answer.status_code, answer.text.replace(handle, "<handle>").replace(handle.partition("/")[2], "<slug>")


@EVERY_KIND
@pytest.mark.parametrize("path", ["/api/v1/agents/by-handle/{}", "/api/a2a/v1/agents/{}/agent-card.json"])
def test_who_sees_an_agent_that_is_not_public(tenants: World, kind: str, path: str) -> None:
    handle, absent_handle = handle_of(tenants, kind), handle_of(tenants, "absent")
    is_card = "card" in path
    for caller in [*tenants.operators, *tenants.refused]:
        answer = get(tenants, path.format(handle), caller)
        if caller in SEES[kind] and not (is_card and kind == "draft"):
            assert answer.status_code == 200, (caller, answer.text)
            continue
        absent = get(tenants, path.format(absent_handle), caller)
        assert bare(answer, handle) == bare(absent, absent_handle), caller
        assert answer.status_code == (401 if caller in tenants.refused and not is_card else 404), caller


@EVERY_KIND
@pytest.mark.parametrize("path", ["/agents/{}", "/agents/{}/standing"])
def test_who_visits_the_page_of_an_agent_that_is_not_public(tenants: World, kind: str, path: str) -> None:
    handle, absent_handle = handle_of(tenants, kind), handle_of(tenants, "absent")
    for caller in [*tenants.operators, *tenants.refused]:
        statuses = {}
        for name in (handle, absent_handle):
            token = tenants.tokens.get(caller)
            headers = {"Cookie": f"cw_session={token}"} if token else {}
            answer = tenants.web.get(path.format(name), headers=headers)
            statuses[name] = answer.status_code
            assert (
                set(CANARY.findall(answer.text)) <= ({"canary-guest"} if caller == "gwen" else set())
                or caller == "olga"
            )
        assert statuses[absent_handle] == 404
        may = caller in SEES[kind] - {"olga app"} and kind != "draft"
        assert statuses[handle] == (200 if may else 404), caller


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


@pytest.mark.parametrize("spoken", DIALECT_REQUESTS, ids=str)
@EVERY_KIND
def test_who_reaches_an_agent_by_any_method(tenants: World, kind: str, spoken: DialectRequest) -> None:
    assert get(tenants, "/.well-known/jwks.json", "").status_code == 200  # the first card would make the hub's key
    handle, absent_handle, before = handle_of(tenants, kind), handle_of(tenants, "absent"), tenants.changes.mark()
    for caller in [*tenants.operators, *tenants.refused]:
        answer = ask(tenants, handle, caller, spoken)
        if caller in SEES[kind] and kind != "draft":
            assert answer.status_code == 200, (caller, answer.text)
            assert not spoken.asks or "agent channel offline" in answer.text, (caller, answer.text)
            continue
        assert bare(answer, handle) == bare(ask(tenants, absent_handle, caller, spoken), absent_handle), caller
        assert answer.status_code == 404, (caller, answer.text)
    tenants.changes.check_none(before)


@pytest.mark.parametrize("spoken", [one for one in DIALECT_REQUESTS if one.asks], ids=str)
def test_who_asks_over_the_bridge(tenants: World, spoken: DialectRequest) -> None:
    for caller in tenants.operators:
        answer = ask(tenants, "olga/pub-main", caller, spoken)
        assert answer.status_code == 200
        assert ("failed" in answer.text.lower()) == (caller == "blake"), (caller, answer.text)
        assert ("echo: what's" in answer.text) == (caller != "blake"), (caller, answer.text)
    for caller in tenants.refused:
        assert ask(tenants, "olga/pub-main", caller, spoken).status_code == 401, caller


def test_an_agent_of_the_suspended_is_gone_for_all(tenants: World) -> None:
    absent_handle = handle_of(tenants, "absent")
    for caller in tenants.operators:
        assert bare(ask(tenants, "gus/pub-gone", caller), "gus/pub-gone") == bare(
            ask(tenants, absent_handle, caller), absent_handle
        )


@pytest.mark.parametrize("spoken", [one for one in DIALECT_REQUESTS if one.names_a_task], ids=str)
def test_a_task_is_its_callers_alone(tenants: World, spoken: DialectRequest) -> None:
    task = ask(tenants, "olga/pub-main", "gwen").json()["result"]["id"]
    for caller in [one for one in tenants.operators if one != "gwen"]:
        answers = [ask(tenants, "olga/pub-main", caller, spoken, one) for one in (task, "task-none")]
        assert answers[0].text.replace(task, "<id>") == answers[1].text.replace("task-none", "<id>"), caller
        assert "-32001" in answers[0].text, (caller, answers[0].text)
    kept = ask(tenants, "olga/pub-main", "gwen", READ, task)
    assert kept.json()["result"]["status"]["state"] == "COMPLETED"


def test_a_list_of_tasks_is_its_callers_alone(tenants: World) -> None:
    task = ask(tenants, "olga/pub-main", "gwen").json()["result"]["id"]
    for caller in tenants.operators:
        listed = ask(tenants, "olga/pub-main", caller, LIST).json()["result"]["tasks"]
        assert (task in [one["id"] for one in listed]) == (caller == "gwen"), caller
