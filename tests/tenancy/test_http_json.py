"""What is below an agent's address, by each caller: absent and not-yours look alike, a refusal changes nothing."""

import itertools

import pytest

from a2a_bridge.surface.addresses import ADDRESSES
from lab.callers import bearer, question
from lab.waiting import until
from tests.tenancy.test_agents import SEES, bare, handle_of, kinds
from tests.tenancy.web import Answer
from tests.tenancy.world import World

V1 = {"A2A-Version": "1.0"}
PUBLIC = "olga/pub-main"
ASKING = ["message:send", "message:stream"]
URL = {"url": "https://1.1.1.1/hook"}  # nothing is sent there: these tasks have ended
CALLS = [(verb, one.path) for one in ADDRESSES for verb in one.calls]
OF_TASKS = [(verb, path) for verb, path in CALLS if path.startswith("tasks/")]


def call(tenants: World, handle: str, caller: str, verb: str, path: str, task_id: str = "task-none") -> Answer:
    """One call, made again while the agent is busy with another caller's."""
    token = tenants.tokens.get(caller)
    body = {"json": question("hi") if "message" in path else URL} if verb == "POST" else {}
    url = f"/api/a2a/v1/agents/{handle}/{names_in(path, task_id)}"

    def free() -> Answer | None:
        headers = V1 | (bearer(token) if token else {})
        answer = tenants.web.request(verb, url, headers=headers, **body)
        return None if "processing a turn for another caller" in answer.text else answer

    return until(free, f"{handle} is free", within_s=20)


def names_in(path: str, task_id: str) -> str:
    """A path with its names filled in; a push address is always called the same."""
    return path.format(id="p1", taskId=task_id) if "taskId" in path else path.format(id=task_id)


def told(answer: Answer, task_id: str) -> tuple[int, str]:
    """An answer without the task it was about."""
    return answer.status_code, answer.text.replace(task_id, "<id>")


@pytest.mark.parametrize(("verb", "path"), CALLS, ids=[" ".join(one) for one in CALLS])
def test_who_reaches_an_agent_over_http_json(tenants: World, verb: str, path: str) -> None:
    """Each address by each caller with a limited agent; addresses that ask with the other kinds too."""
    absent_handle, before = handle_of(tenants, "absent"), tenants.changes.mark()
    absent = bare(call(tenants, absent_handle, "", verb, path), absent_handle)
    assert absent[0] == 404
    callers = [*tenants.operators, *tenants.refused]
    for kind, caller in itertools.product(kinds(is_asking=path in ASKING), callers):
        handle = handle_of(tenants, kind)
        answer = call(tenants, handle, caller, verb, path)
        if caller in SEES[kind] and kind != "draft":
            assert "AGENT_NOT_FOUND" not in answer.text, (kind, caller, answer.text)
        else:
            assert bare(answer, handle) == absent, (kind, caller)
    tenants.changes.check_none(before)


@pytest.mark.parametrize("path", ASKING)
def test_who_asks_over_http_json(tenants: World, path: str) -> None:
    for caller in tenants.operators:
        answer = call(tenants, PUBLIC, caller, "POST", path)
        assert answer.status_code == 200
        assert ("TASK_STATE_FAILED" in answer.text) == (caller == "blake"), (caller, answer.text)
        assert ("echo: hi" in answer.text) == (caller != "blake"), (caller, answer.text)
    for caller in tenants.refused:
        assert call(tenants, PUBLIC, caller, "POST", path).status_code == 401, caller


def test_what_is_below_a_task_is_its_callers_alone(tenants: World) -> None:
    task_id = call(tenants, PUBLIC, "gwen", "POST", "message:send").json()["task"]["id"]
    pushes = "tasks/{taskId}/pushNotificationConfigs"
    kept = call(tenants, PUBLIC, "gwen", "POST", pushes, task_id)
    assert kept.status_code == 200, kept.text
    before = tenants.changes.mark()
    for verb, path in OF_TASKS:
        absent = told(call(tenants, PUBLIC, "stan", verb, path), "task-none")
        assert (absent[0], "TASK_NOT_FOUND" in absent[1]) == (404, True), (verb, path)
        for caller in [one for one in tenants.operators if one != "gwen"]:
            theirs = call(tenants, PUBLIC, caller, verb, path, task_id)
            assert told(theirs, task_id) == absent, (verb, path, caller)
        for caller in tenants.refused:
            assert call(tenants, PUBLIC, caller, verb, path, task_id).status_code == 401, (verb, path, caller)
    tenants.changes.check_none(before)
    assert call(tenants, PUBLIC, "gwen", "GET", pushes, task_id).json()["configs"] == [kept.json()]


def test_tasks_are_listed_to_their_caller_alone(tenants: World) -> None:
    task_id = call(tenants, PUBLIC, "gwen", "POST", "message:send").json()["task"]["id"]
    for caller in tenants.operators:
        listed = call(tenants, PUBLIC, caller, "GET", "tasks").json()["tasks"]
        assert (task_id in [one["id"] for one in listed]) == (caller == "gwen"), caller
    for caller in tenants.refused:
        for path in ("tasks", "extendedAgentCard"):
            assert call(tenants, PUBLIC, caller, "GET", path).status_code == 401, (caller, path)
