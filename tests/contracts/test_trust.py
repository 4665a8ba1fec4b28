"""Strangers to an agent: its owner's own agents are not strangers."""

import pytest
from msgspec import Struct
from msgspec.structs import replace

from agents.core.errors import Cycle, TooDeep
from agents.core.ledger.work import Result
from agents.core.types import Ask, OpenTurn
from agents.links.channel.driving import ActingFor
from agents.models import Session
from tests.contracts.rows import Published, admitted, ask, decide, published, user
from tests.contracts.test_channel_protocol import AskedAgent, prompt

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


def of_owner(agent: Published, **fields: object) -> Ask:
    owner = agent.agent.owner
    return replace(ask(agent), caller_id=owner.pk, caller_login=owner.login, **fields)


def own_session(agent: Published) -> int:
    """Another session of the agent's owner."""
    return int(Session.objects.create(owner=agent.agent.owner, routing_name="other").pk)


def test_an_agent_is_isolated_for_strangers_and_for_what_one_of_them_passed_on() -> None:
    for is_isolated in [True, False]:
        agent = published(isolated=is_isolated, concurrency_cap=9)
        own = [admitted(of_owner(agent)), admitted(of_owner(agent, chain=(own_session(agent),), tells=True))]
        assert [(turn.isolated, turn.is_own) for turn in own] == 2 * [(False, True)], is_isolated
        passed = admitted(of_owner(agent, chain=(own_session(agent),), passed_by_stranger=True))
        assert (passed.isolated, passed.is_own) == (is_isolated, False), is_isolated
        other = published(isolated=is_isolated, concurrency_cap=9)
        of_strangers = [
            ask(other),
            replace(ask(other), chain=(own_session(other),)),
        ]  # passed on by an agent of its owner
        assert [(turn.isolated, turn.is_own) for turn in map(admitted, of_strangers)] == 2 * [
            (is_isolated, False)
        ], is_isolated


class AskBack(Struct):
    """An ask to a session of its own chain, and the refusal of the ask."""

    tells: bool
    is_owners: bool
    passed_by_stranger: bool
    refused: type[Cycle] | None


def test_what_an_owners_agent_tells_its_asker_is_progress_and_what_it_asks_it_is_a_cycle() -> None:
    for case in [
        AskBack(tells=True, is_owners=True, passed_by_stranger=False, refused=None),
        AskBack(tells=False, is_owners=True, passed_by_stranger=False, refused=Cycle),
        AskBack(tells=True, is_owners=True, passed_by_stranger=True, refused=Cycle),
        AskBack(tells=True, is_owners=False, passed_by_stranger=False, refused=Cycle),
        AskBack(tells=False, is_owners=False, passed_by_stranger=False, refused=Cycle),
    ]:
        agent = published()
        chain = (agent.ref.session_id, own_session(agent))
        one = of_owner(agent, chain=chain) if case.is_owners else replace(ask(agent), chain=chain)
        result: Result = decide(replace(one, tells=case.tells, passed_by_stranger=case.passed_by_stranger))[0]
        assert isinstance(result, case.refused or OpenTurn), result


def test_the_last_agent_that_may_be_asked_tells_its_asker_about_its_progress() -> None:
    agent = published()
    chain = (own_session(agent), own_session(agent), agent.ref.session_id, own_session(agent))
    admitted(of_owner(agent, chain=chain, tells=True))
    elsewhere = (*chain[:2], own_session(agent), chain[3])
    assert isinstance(decide(of_owner(agent, chain=elsewhere, tells=True))[0], TooDeep)


def test_what_an_agent_asks_for_another_user_is_passed_on_by_a_stranger() -> None:
    owner = user("owner")
    own = ActingFor.owner(owner.pk, owner.login, 5)
    assert not AskedAgent().prompts.acting_for(own).asker.passed_by_stranger
    for is_own in (True, False):
        prompts = AskedAgent().prompts
        asker_id = owner.pk if is_own else owner.pk + 1
        prompts.begin(prompt("c", asker=asker_id, chain=(3, 5), is_own=is_own))
        asker = prompts.acting_for(own).asker
        assert asker.passed_by_stranger is not is_own
        assert asker.chain == (3, 5)
