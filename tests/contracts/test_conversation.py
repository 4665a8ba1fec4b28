"""An operator whose share of a session becomes less, or who watches it twice: what the live view does."""

import json
import time
from datetime import timedelta

import pytest

from accounts.authn import Identity
from accounts.models import User
from accounts.quotas import MEBIBYTE
from agents.core.live_views import LiveViews
from agents.core.post import LocalPost
from agents.limits import OP_MESSAGES
from agents.models import Attachment, Process, Session, Share
from agents.models.session import PROCESS_DEAD_S
from agents.transcript.announcements import ChannelStatus, RecheckAccess
from agents.transcript.storage import StorageMeter
from hub import wiring
from kit.account_pace import AccountPace
from kit.async_db import db_call
from kit.clock import db_now
from lab.callers import Json
from lab.waiting import eventually
from operators.service.session_views import find_lost_views, load_attendance
from operators.surface.conversation import OperatorConversation
from operators.wire.frames import OpMessage, Subscribe
from tests.contracts.rows import live_process, published, user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.ledger]


class Heard:
    """Keeps the frames."""

    def __init__(self) -> None:
        self.frames: list[Json] = []

    def put(self, frame: bytes) -> None:
        self.frames.append(json.loads(frame))


def share(role: str) -> tuple[Session, User]:
    """A session of another owner, shared with bob; this process lives."""
    session, bob = published().agent.session, user("bob")
    live_process("here")
    Share.objects.create(session=session, user=bob, role=role, shared_by=session.owner)
    return session, bob


def converse(bob: User, live: LiveViews, heard: Heard) -> OperatorConversation:
    identity = Identity(1, "session", "", bob.pk, bob.login, is_staff=False, is_stale=False)
    prompt_service = wiring.HubServices().operators.prompt_service
    meter = StorageMeter(1, time.monotonic)
    return OperatorConversation(
        identity,
        prompt_service=prompt_service,
        live=live,
        meter=meter,
        pace=AccountPace(0),
        process_id="here",
        put=heard.put,
    )


async def show(live: LiveViews, session: Session) -> None:
    message = ChannelStatus(str(session.public_id), connected=True, ts="now")
    await live.publish(["here"], session.pk, message)


async def test_who_lost_the_share_sees_nothing_more() -> None:
    session, bob = await db_call(share)("viewer")
    live, heard = LiveViews(process_id="here", post=LocalPost()), Heard()
    conversation = converse(bob, live, heard)
    await conversation.take(Subscribe(session_id=str(session.public_id)))
    await show(live, session)
    assert [one["type"] for one in heard.frames] == ["subscribed", "presence", "channel_status"]
    await db_call(Share.objects.filter(user=bob).delete)()
    live.take(RecheckAccess(session.pk, bob.pk))

    async def told() -> bool:
        return heard.frames[-1].get("code") == "forbidden"

    await eventually(told, "the subscription is over", every_s=0.01)
    await show(live, session)
    assert heard.frames[-1]["code"] == "forbidden"
    assert not await db_call(Attachment.objects.exists)()
    await conversation.end()


@pytest.mark.parametrize("why", ["no share", "a suspended owner"])
async def test_views_that_are_not_theirs_any_more_are_found_without_a_message(why: str) -> None:
    session, bob = await db_call(share)("viewer")

    def lose() -> list[RecheckAccess]:
        for watcher in (bob, session.owner):
            Attachment.objects.create(session=session, process_id="here", user=watcher)
        assert find_lost_views("here") == []
        if why == "no share":
            Share.objects.filter(user=bob).delete()
        else:
            User.objects.filter(pk=session.owner_id).update(is_active=False)
        return find_lost_views("here")

    assert await db_call(lose)() == [RecheckAccess(session.pk, bob.pk)]


async def test_who_keeps_a_share_keeps_the_view() -> None:
    session, bob = await db_call(share)("approver")
    live, heard = LiveViews(process_id="here", post=LocalPost()), Heard()
    conversation = converse(bob, live, heard)
    await conversation.take(Subscribe(session_id=str(session.public_id)))
    await db_call(Share.objects.filter(user=bob).update)(role="viewer")
    live.take(RecheckAccess(session.pk, bob.pk))
    await conversation.take(Subscribe(session_id=str(session.public_id)))
    assert [one["role"] for one in heard.frames if one["type"] == "subscribed"] == ["approver", "viewer"]
    await show(live, session)
    assert heard.frames[-1]["type"] == "channel_status"
    await conversation.end()
    assert not await db_call(Attachment.objects.exists)()


async def test_the_attached_of_a_dead_process_are_not_there() -> None:
    session, bob = await db_call(share)("viewer")

    def dead() -> None:
        process = live_process("gone")
        Attachment.objects.create(session=session, process=process, user=bob)
        assert load_attendance(session.pk).logins == ["bob"]
        Process.objects.filter(pk=process.pk).update(beat_at=db_now() - timedelta(seconds=PROCESS_DEAD_S + 1))

    await db_call(dead)()
    assert (await db_call(load_attendance)(session.pk)).logins == []


async def test_who_filled_their_share_tells_the_other_operators_nothing() -> None:
    session, bob = await db_call(share)("prompter")
    live, heard = LiveViews(process_id="here", post=LocalPost()), Heard()
    conversation = converse(bob, live, heard)
    said = OpMessage(session_id=str(session.public_id), text="\u00e9" * 65_536)
    for _ in range(9):
        await conversation.take(said)
    assert [one.get("code", one["type"]) for one in heard.frames] == ["ack"] * 8 + ["quota_exceeded"]
    assert await db_call(OP_MESSAGES.count)(bob.pk) == MEBIBYTE
    await conversation.end()
