"""The names of tools that ask one agent, and the way back to their agents."""

import re
from typing import Any

import pytest

from accounts.authn import Identity, Presented
from mcp_server.service.calls import ToolCaller
from mcp_server.service.catalog import find_handle, load_agent_tools, name_tool
from tests.contracts.rows import published, user

LONG = "a-reviewer-of-pull-requests-that-change-the-database-schema"


def make_caller(**limits: str) -> ToolCaller:
    identity = Identity(1, "session", "", user("alice").pk, "alice", is_staff=False, is_stale=False, **limits)
    return ToolCaller(token=Presented("0" * 64, False), identity=identity, body_bytes=1, traceparent="")


def publish(handle: str, **fields: Any) -> None:
    published(online=False, handle=handle, handle_key=handle.lower(), **fields)


def test_names_are_short_and_stable() -> None:
    assert name_tool("owner/helper") == "ask_owner_helper"
    exact = f"{'o' * 20}/{'s' * 39}"
    assert name_tool(exact) == "ask_" + exact.replace("/", "_")
    for handle in (f"{'o' * 20}/{'s' * 40}", f"{'o' * 39}/{'s' * 64}", f"owner/{LONG}"):
        assert re.fullmatch(r"ask_[A-Za-z0-9-]+_[a-z0-9-]+_[0-9a-f]{8}", name_tool(handle))
        assert len(name_tool(handle)) == 64
    assert name_tool(f"owner/{LONG}-1") != name_tool(f"owner/{LONG}-2")
    assert name_tool("a-team/" + "x" * 64) == "ask_a-team_" + "x" * 44 + "_22bc55f1"


@pytest.mark.django_db
def test_each_name_leads_back_to_its_agent() -> None:
    of_ann = [f"ann_corp/{LONG}", "ann_corp/bot"]
    caller, handles = make_caller(), [*of_ann, f"Owner/{LONG}-1", f"Owner/{LONG}-2", "Owner/helper"]
    for handle in handles:
        publish(handle)
    publish(f"owner/{LONG}-private", access="private")
    shown = [tool.name for tool in load_agent_tools(caller, "")[0]]
    assert [find_handle(caller, name) for name in shown] == handles
    assert find_handle(caller, name_tool(f"owner/{LONG}-private")) is None


@pytest.mark.django_db
def test_a_name_that_no_agent_has_is_none() -> None:
    publish(f"owner/{LONG}")
    name, caller = name_tool(f"owner/{LONG}"), make_caller()
    for change in ("_00000000", "_\u2603000000\u2603", "_%%%%%%%%", "_zzzzzzzz"):
        assert find_handle(caller, name[:-9] + change) is None
    assert find_handle(caller, name[:-9].replace("reviewer", "%") + name[-9:]) is None
