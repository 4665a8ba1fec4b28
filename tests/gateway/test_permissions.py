"""Roles and lists of peers: who may do what in a team, and which agents may message each other."""

import json

import pytest

from accounts.authn import Identity
from gateway.surface.handlers import SERVICES
from gateway.wire.errors import FrameRefused
from gateway.wire.frame_types import FRAME_TYPES
from gateway.wire.frames import Envelope, check_frame, read_object, read_type
from gateway.wire.permissions import (
    MAY,
    OF_FRAMES,
    Action,
    TeamRole,
    check_service,
    find_role,
    is_permitted,
)
from gateway.wire.permissions import check_frame as check_permitted
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, GatewayClient, code_of, owner_of, team
from tests.gateway.test_frames import SOUND
from tests.gateway.test_tokens import mint

TOKENS = {
    TeamRole.ADMIN: ("session", ""),
    TeamRole.OPERATOR: ("app", ""),
    TeamRole.AGENT: ("channel", ""),
    TeamRole.OBSERVER: ("app", "read"),
}
MESSAGES = {"message", "response", "event", "broadcast", "proposal", "vote"}


def identity_of(role: TeamRole) -> Identity:
    kind, scopes = TOKENS[role]
    return Identity(1, kind, "", 1, "ann", is_staff=False, is_stale=False, scopes=scopes)


def envelope_of(frame: Json) -> Envelope:
    frame = read_object(json.dumps(frame))
    return check_frame(frame, read_type(frame))


def is_refused(role: TeamRole, frame: Json, seat: str = "alpha") -> bool:
    identity, own = identity_of(role), seat if role is TeamRole.AGENT else ""
    try:
        if frame["type"] == "request":
            content = frame["content"]
            check_service(identity, own, SERVICES[content["service"]].action, content["params"])
        else:
            check_permitted(identity, own, envelope_of(frame))
    except FrameRefused as refused:
        reason = "not_triad_member" if frame["type"] == "vote" else "role"
        return (refused.code, refused.reason) == (5004, reason)
    return False


def test_each_kind_of_token_has_its_role() -> None:
    assert [find_role(identity_of(role)) for role in TeamRole] == list(TeamRole)


def test_every_type_of_frames_and_every_action_has_a_rule() -> None:
    served = {name for name, one in FRAME_TYPES.items() if one.taken and not one.before_auth}
    assert OF_FRAMES.keys() == served - {"request", "error"}  # an error answers a message that was sent to it
    assert MAY.keys() == set(Action)


def test_the_table_of_roles_holds_for_every_type_of_frames() -> None:
    for name in OF_FRAMES:
        refused = {role for role in TeamRole if is_refused(role, SOUND[name])}
        sends = name in MESSAGES or (name == "status" and SOUND[name].get("content"))
        votes = {TeamRole.ADMIN, TeamRole.OPERATOR} if name == "vote" else set()
        assert refused == votes | ({TeamRole.OBSERVER} if sends else set()), name


def test_an_agent_is_served_for_itself_alone() -> None:
    for service, (action, _) in SERVICES.items():
        own, frame = (
            {"type": "request", "content": {"service": service, "params": {"agent": name}}}
            for name in ("alpha", "beta")
        )
        concerns_one = action in (Action.READ_AGENT, Action.WRITE_AGENT, Action.MANAGE_AGENT)
        assert is_refused(TeamRole.AGENT, frame) == concerns_one
        assert not is_refused(TeamRole.AGENT, own)
        assert not is_refused(TeamRole.ADMIN, frame)
        assert is_refused(TeamRole.OPERATOR, frame) == (action is Action.WRITE_AGENT)
        assert is_refused(TeamRole.OBSERVER, frame) == (action is not Action.FIND)


def test_an_inbox_is_for_its_agent_and_for_those_who_run_the_team() -> None:
    def subscribe(channel: str) -> Json:
        return {"type": "subscribe", "content": {"channel": channel}}

    refused = {role for role in TeamRole if is_refused(role, subscribe("agent:beta:inbox"))}
    assert refused == {TeamRole.AGENT, TeamRole.OBSERVER}
    assert not is_refused(TeamRole.AGENT, subscribe("agent:alpha:inbox"))
    assert {role for role in TeamRole if is_refused(role, subscribe("agent:a2a"))} == {TeamRole.OBSERVER}
    assert not is_refused(TeamRole.OBSERVER, subscribe("agent:status"))


def test_scopes_narrow_a_role(subtests: pytest.Subtests) -> None:
    asks = {Action.SEND, Action.BROADCAST, Action.PROPOSE, Action.FIND}
    for scopes, allowed in {
        "ask": asks,
        "ask read": asks | {Action.READ_AGENT},
        "read": {Action.FIND},
        "publish": set(),
    }.items():
        with subtests.test(scopes=scopes):
            token = Identity(1, "app", "", 1, "ann", is_staff=False, is_stale=False, scopes=scopes)
            assert {one for one in Action if is_permitted(token, one)} == allowed


async def test_an_observer_looks_and_sends_nothing(embedded_hub: HubProcess) -> None:
    token = (await mint(embedded_hub, "observed-team", scopes=["read"]))["token"]
    async with (
        team(embedded_hub, "observed-team", "alpha") as (alpha,),
        GatewayClient(embedded_hub.url, token) as one,
    ):
        assert await one.discover() == {"alpha": "online"}
        for agent in ("alpha", "absent"):
            assert code_of(await one.send_message(agent, "hello")) == (5004, "role")
        assert alpha.of("message") == []


async def set_peers(hub: HubProcess, login: str, agent: str, **lists: list[str] | None) -> None:
    """Set the lists of peers of an agent over REST."""
    async with web(hub.url) as client:
        headers = bearer(hub.mint(login, "session"))
        answer = await client.patch(f"/api/v1/team/agents/{agent}", json=lists, headers=headers)
        assert answer.status_code == 200, answer.text


async def test_lists_of_peers_hold_in_each_direction(embedded_hub: HubProcess) -> None:
    login, not_allowed = "peers-team", (5004, "peer_not_allowed")
    async with (
        team(embedded_hub, login, alpha=EchoSeat, beta=EchoSeat) as (alpha, beta),
        owner_of(embedded_hub, login) as admin,
    ):

        async def is_refused(sender: GatewayClient, agent: str) -> bool:
            return code_of(await sender.send_message(agent, "hello")) == not_allowed

        await set_peers(embedded_hub, login, "alpha", maySendTo=["gamma"], mayHearFrom=None)
        await eventually(lambda: is_refused(alpha, "beta"), "the list counts")
        assert code_of(await alpha.send_message("gamma", "hello"))[0] == 3001
        assert not await is_refused(beta, "alpha")
        await set_peers(embedded_hub, login, "alpha", maySendTo=None, mayHearFrom=["gamma"])
        await eventually(lambda: is_refused(beta, "alpha"), "the other list counts")
        assert not await is_refused(alpha, "beta")
        assert not await is_refused(admin, "alpha")
        for sent in (
            await beta.ask("broadcast", {"message": "stop"}),
            await beta.send_message("broadcast", "stop"),
        ):
            assert sent["content"]["result"]["totalSent"] == 0
        left = await beta.request("inbox.send", agent="alpha", content="hello")
        assert (left["error"]["code"], left["error"]["reason"]) == not_allowed
        await set_peers(embedded_hub, login, "alpha", maySendTo=["beta"], mayHearFrom=["beta"])

        async def is_allowed() -> bool:
            return not await is_refused(beta, "alpha")

        await eventually(is_allowed, "the agent is in the list")
        assert not await is_refused(alpha, f"@{login}/beta")
