"""Targets that a caller may ask: sessions without an agent, access, blocks, and asks that agents pass on."""

import pytest
from msgspec.structs import replace

from agents.core.admission import MAX_DEPTH
from agents.core.ask_starter import NoSuchTarget
from agents.core.errors import Blocked, Busy, Cycle, NotPublished, TooDeep
from agents.core.ledger.state import LookUp, look_up
from agents.core.types import Ask, AskSource, AskTarget
from agents.links.channel.refusals import find_routed, refusal_text
from agents.models import Agent, AgentGrant, CallerBlock, Session, Share, Turn
from agents.models.choices import Surface
from agents.transcript.access import NotAllowed
from tests.contracts.rows import Published, admitted, ask, decide, end, published, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


def of_session(agent: Published, caller: str = "alice") -> Ask:
    """The same session, asked as such."""
    return replace(
        ask(agent, caller), target=AskTarget(None, agent.ref.session_id, "desk"), surface=Surface.PROMPT
    )


def test_an_ask_to_a_session_drives_and_is_audited_but_has_no_budget() -> None:
    agent = published(daily_budget=1)
    turn = admitted(of_session(agent))
    row = Turn.objects.get()
    assert (row.agent, row.session_id, row.usage_day) == (None, agent.ref.session_id, None)
    assert agent.spent == 0
    assert isinstance(decide(ask(agent, "bob"))[0], Busy)
    end(turn)
    admitted(ask(agent, "bob"))


def test_an_archived_session_is_not_asked() -> None:
    agent = published()
    Session.objects.filter(pk=agent.ref.session_id).update(archived_at=agent.agent.created_at)
    assert isinstance(decide(of_session(agent))[0], NotPublished)


def test_access_decides_in_the_lookup_and_again_at_admission() -> None:
    for access, asker, is_asked in [
        ("public", "stranger", True),
        ("limited", "stranger", False),
        ("limited", "friend", True),
        ("limited", "owner", True),
        ("private", "friend", False),
        ("private", "owner", True),
    ]:
        agent = published(access=access)
        AgentGrant.objects.create(agent=agent.agent, user=user("friend"))
        login = agent.agent.owner.login if asker == "owner" else asker
        (refusal,) = decide(ask(agent, login))
        assert isinstance(refusal, NotPublished) != is_asked, (access, asker, is_asked)
        if not is_asked:
            assert agent.turns == [], (access, asker, is_asked)


def test_an_agent_that_is_not_open_to_all_is_not_there_for_a_stranger() -> None:
    agent = published(access=Agent.Access.LIMITED)
    assert look_up([LookUp(None, agent.ref.handle)])[0].agent is None
    Agent.objects.filter(pk=agent.agent.pk).update(access="public")
    assert look_up([LookUp(None, agent.ref.handle.upper())])[0].agent == agent.ref


@pytest.mark.parametrize("as_session", [False, True])
def test_a_blocked_caller_is_refused_and_audited(*, as_session: bool) -> None:
    agent = published()
    CallerBlock.objects.create(owner=agent.agent.owner, caller=user("mallory"))
    one = of_session(agent, "mallory") if as_session else ask(agent, "mallory")
    assert isinstance(decide(one)[0], Blocked)
    assert Turn.objects.get().reason == "blocked"
    admitted(ask(agent, "alice"))


def test_an_ask_is_passed_on_three_times_and_never_in_a_circle() -> None:
    agent = published()
    elsewhere = tuple(range(10_000, 10_000 + MAX_DEPTH))
    turn = admitted(replace(ask(agent), chain=elsewhere))
    assert Turn.objects.get().depth == MAX_DEPTH
    end(turn)
    assert isinstance(decide(replace(ask(agent), chain=(*elsewhere, 20_000)))[0], TooDeep)
    assert isinstance(decide(replace(ask(agent), chain=(agent.ref.session_id,)))[0], Cycle)


def test_where_it_was_asked_from_is_kept_and_survives_that_session() -> None:
    agent = published()
    source = Session.objects.create(owner=user("alice"), routing_name="here")
    admitted(replace(ask(agent), source=AskSource(source.pk)))
    assert Turn.objects.get().source_session_id == source.pk
    source.delete()
    assert Turn.objects.get().source_session_id is None


def test_an_agent_of_a_viewer_is_told_the_role_that_asking_takes() -> None:
    owner, viewer = user("owner"), user("viewer")
    session = Session.objects.create(owner=owner, routing_name="desk")
    with pytest.raises(NoSuchTarget):
        find_routed("owner/desk", viewer.pk)
    share = Share.objects.create(session=session, user=viewer, role="viewer", shared_by=owner)
    with pytest.raises(NotAllowed) as refused:
        find_routed("owner/desk", viewer.pk)
    assert (
        refusal_text(refused.value, "owner/desk") == "asking @owner/desk takes the role prompter of that session"
    )
    share.role = "prompter"
    share.save()
    assert find_routed("owner/desk", viewer.pk).session_id == session.pk


def test_a_handle_is_looked_up_as_it_is_written() -> None:
    for odd in ['"', '","', '"},{"', "\\", '\\"', ",", "{", "}", "'", "\n", "%s", ":now", " ", "NULL"]:
        agent, other = published(), published()
        handle = f"{odd}{agent.ref.handle}"
        assert (
            look_up([LookUp(None, handle), LookUp(None, odd), LookUp(None, other.ref.handle)])[1].agent is None
        ), odd
        Agent.objects.filter(pk=agent.agent.pk).update(handle=handle, handle_key=handle.lower())
        found = look_up([LookUp(None, handle), LookUp(None, agent.ref.handle), LookUp(None, other.ref.handle)])
        assert [one.agent and one.agent.agent_id for one in found] == [agent.agent.pk, None, other.agent.pk], odd


def test_a_question_is_kept_letter_by_letter() -> None:
    agent = published()
    turn = admitted(replace(ask(agent), question='{"a": [1, "\\n"]}, \'x\' "é😀" \\ %s :now $1'))
    assert Turn.objects.get().question == turn.text
