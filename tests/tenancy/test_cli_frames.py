"""Every frame of `/cli` by every caller: the rules hold, absent and not-yours look the same."""

import re
from typing import Any

import pytest

from lab.callers import Json
from lab.waiting import eventually
from tests.operators.operator import Operator
from tests.tenancy.callers import ABSENT, CALLERS, Caller, verdict
from tests.tenancy.rights import May
from tests.tenancy.rules import FRAMES
from tests.tenancy.test_matrix import CANARY
from tests.tenancy.world import Names, World, fill

CODES = {403: {"forbidden", "blocked"}}


async def answer(tenants: World, name: str, caller: Caller, names: Names) -> Json:
    """The answer to a caller's frame; asks are put again while the agent is busy with another caller's."""

    async def free() -> Json | None:
        said = await once(tenants, name, caller, names)
        return None if said.get("code") == "busy" else said

    return await eventually(free, f"{name}: the agent is free", within_s=20)


async def once(tenants: World, name: str, caller: Caller, names: Names) -> Json:
    """The first frame that answers."""
    async with Operator(tenants.hub.url, tenants.tokens.get(caller.token)) as operator:
        if caller.is_live and caller.kind != "channel":
            await operator.send(name.partition(" ")[2], **fill(FRAMES[name].body, names))
        return await operator.heard(lambda frame: frame["type"] in ("ack", "error", "subscribed"))


def without(said: Json, names: Names) -> Any:
    """An answer without the names it was about."""
    known = {str(value): key for key, value in names.items() if not isinstance(value, int)}
    words = sorted(known, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, words)), lambda found: f"<{known[found.group()]}>", repr(said))


@pytest.mark.parametrize("name", [name for name in FRAMES if name.startswith("/cli ")])
async def test_each_caller_gets_what_the_rule_says(tenants: World, name: str) -> None:
    rule, before = FRAMES[name], tenants.changes.mark()
    absent = without(await answer(tenants, name, CALLERS["another tenant"], tenants.absent), tenants.absent)
    for one, caller in tenants.callers.items():
        expected = verdict(rule, caller)
        if expected is None:
            continue
        said = await answer(tenants, name, caller, tenants.main)
        assert said["type"] == "error", (one, said)
        assert not CANARY.search(repr(said)), (one, said)
        if expected == ABSENT:
            assert (without(said, tenants.main), said["code"]) == (absent, "not_found"), one
        else:
            assert said["code"] in CODES.get(int(expected), {"auth_failed", "token_revoked"}), (one, said)
    if rule.may is not May.SIGNED_IN:  # such a frame says nothing of what is there
        for one in ("an approver", "the owner", "another tenant"):  # what belongs to the suspended is absent
            said = await answer(tenants, name, CALLERS[one], tenants.gone)
            assert (without(said, tenants.gone), said["code"]) == (absent, "not_found"), one
    tenants.changes.check_none(before)
    for one, caller in tenants.callers.items():
        if verdict(rule, caller) is None:
            said = await answer(tenants, name, caller, tenants.spare(name) if rule.writes else tenants.main)
            assert said["type"] in ("ack", "subscribed"), (one, said)


async def test_no_user_decides_anothers_request_through_their_own_session(tenants: World) -> None:
    before = tenants.changes.mark()
    theirs = tenants.other | {"request_id": tenants.main["request_id"]}
    said = await answer(tenants, "/cli approval", CALLERS["another tenant"], theirs)
    assert said["code"] == "not_found"
    tenants.changes.check_none(before)


@pytest.mark.parametrize("source", ["main", "absent", "gone"])
async def test_a_prompt_from_a_session_that_is_not_ones_own_is_refused(tenants: World, source: str) -> None:
    before = tenants.changes.mark()
    async with Operator(tenants.hub.url, tenants.tokens["stan"]) as operator:
        ids = {"sessionId": tenants.other["public_id"], "sourceSessionId": getattr(tenants, source)["public_id"]}
        said = await operator.answer("prompt", text="hi", **ids)
    assert (said["code"], said["message"]) == ("not_found", "no such session")
    tenants.changes.check_none(before)


@pytest.mark.parametrize("named", ["file_id", "mentioned"])
async def test_a_file_that_is_not_ones_own_goes_nowhere(tenants: World, named: str) -> None:
    before, told = tenants.changes.mark(), []
    for names in (tenants.main, tenants.absent, tenants.gone):
        file_id = names["file_id"]
        body: Json = (
            {"text": "hi", "attachments": [file_id]} if named == "file_id" else {"text": f"fileId={file_id}"}
        )
        async with Operator(tenants.hub.url, tenants.tokens["stan"]) as operator:
            said = await operator.answer("prompt", sessionId=tenants.other["public_id"], **body)
        told.append(repr(said).replace(str(file_id), "<id>"))
        assert said["code"] == "not_found"
    assert len(set(told)) == 1, told
    tenants.changes.check_none(before)
