"""For whom an agent works: until the end of that very turn, not of one before it."""

import pytest

from agents.core.post import Final, PostedPrompt
from agents.links.channel.driving import LONGEST_TURN_S, ActingFor
from agents.links.channel.payloads import Reply
from tests.contracts.test_channel_protocol import AskedAgent, prompt

ASKER, SELF = 3, 5
OWNER = ActingFor.owner(1, "owner", SELF)


class DrivenAgent(AskedAgent):
    """The prompts of an agent; each step says when it is."""

    def __init__(self) -> None:
        super().__init__()
        self._begun: list[str] = []

    def begin(self, prompt: PostedPrompt, now: float) -> None:
        self.now = now
        self.prompts.begin(prompt)
        self._begun.append(prompt.chat_id)

    def cancel(self, chat_id: str, now: float) -> None:
        self.now = now
        self.prompts.cancel(chat_id)

    def answer(self, chat_id: str, now: float) -> None:
        self.now = now
        self.reports_of(self.prompts.take_reply(Reply(chat_id, "so")))

    def stop(self, now: float) -> list[str]:
        """The end of a turn; the chat ids of the prompts that it ended."""
        before = [one for one in self._begun if self._works_on(one, now)]
        self.reports_of(self.prompts.stopped())
        return [one for one in before if not self._works_on(one, now)]

    def get(self, chat_id: str = "", now: float = 1.0) -> ActingFor:
        """The user whom the agent works for."""
        self.now = now
        return self.prompts.acting_for(OWNER, chat_id)

    def _works_on(self, chat_id: str, now: float) -> bool:
        found = self.get(chat_id, now)
        return found.asker.parent == chat_id and found.is_certain


def told(chat_id: str) -> PostedPrompt:
    return prompt(chat_id, tells=True, wait_s=LONGEST_TURN_S)


def driver(driving: DrivenAgent, now: float = 1.0) -> int | None:
    """The caller for whom the agent works; None: it works for its owner."""
    found = driving.get(now=now)
    return None if found is OWNER else found.asker.user_id


def test_the_end_of_its_turn_ends_a_drive_that_no_caller_waits_for() -> None:
    driving = DrivenAgent()
    driving.begin(told("a"), 0.0)
    assert driving.stop(1.0) == ["a"]
    assert driver(driving) is None


def test_an_agent_works_on_for_its_caller_after_a_told_turn_was_ended_for_it() -> None:
    """A gateway ends such a turn at delivery: its agent has not answered, and acts for that caller still."""
    driving = DrivenAgent()
    driving.begin(told("a"), 0.0)
    assert driving.reports_of(driving.prompts.end_told("a")) == [Final("a", 0)]
    assert driving.reports_of(driving.prompts.end_told("b")) == []
    assert driver(driving, LONGEST_TURN_S - 1.0) == 7


def test_what_waits_behind_another_question_outlives_the_end_of_that_ones_turn() -> None:
    driving = DrivenAgent()
    driving.begin(told("a"), 0.0)
    driving.begin(told("b"), 0.0)
    assert driving.stop(1.0) == ["a"]
    assert driver(driving) == 7
    assert driving.stop(2.0) == ["b"]


def test_what_waits_while_the_owner_types_outlives_the_end_of_the_owners_turn() -> None:
    driving = DrivenAgent()
    driving.prompts.hooked(begins=True)
    driving.begin(told("a"), 0.0)
    driving.prompts.hooked(begins=True)
    assert driving.stop(1.0) == []
    assert driver(driving) == 7
    driving.prompts.hooked(begins=True)
    assert driving.stop(2.0) == ["a"]


def test_a_canceled_question_drives_until_the_end_of_its_turn_and_no_longer() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a"), 0.0)
    assert driving.stop(1.0) == []  # a caller waits: the reply may follow
    driving.cancel("a", 2.0)
    assert driver(driving, 3.0) == 7
    assert driving.stop(3.0) == ["a"]
    assert driver(driving, 3.0) is None
    driving.cancel("a", 4.0)


def test_a_question_that_timed_out_behind_another_still_drives_when_its_turn_comes() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a"), 0.0)
    driving.begin(prompt("b", wait_s=0.5), 0.0)
    driving.answer("a", 1.0)
    assert driving.stop(1.0) == ["a"]
    assert driver(driving) == 7
    assert driving.stop(2.0) == ["b"]


@pytest.mark.parametrize("ahead", [0, 2])
def test_what_was_answered_is_over_with_the_next_end(ahead: int) -> None:
    driving = DrivenAgent()
    for number in range(ahead):
        driving.begin(told(f"before {number}"), 0.0)
    driving.begin(told("a"), 0.0)
    driving.prompts.hooked()
    driving.answer("a", 0.5)
    assert "a" in driving.stop(1.0)


def test_what_an_agent_asks_is_of_the_last_question_that_is_waited_for() -> None:
    driving = DrivenAgent()
    for chat_id in ("a", "b", "c"):
        driving.begin(prompt(chat_id), 0.0)
    assert driving.get().asker.parent == "c"
    driving.cancel("c", 0.5)
    driving.answer("b", 0.5)
    assert driving.get().asker.parent == "a"
    assert driving.get("b").asker.parent == "b"  # as the agent says
    assert driving.get("of another agent").asker.parent == "a"


def test_what_a_program_with_hooks_asks_is_of_the_question_that_it_works_on() -> None:
    driving = DrivenAgent()
    driving.prompts.hooked()
    for chat_id in ("a", "b"):
        driving.begin(told(chat_id), 0.0)
    assert driving.get().asker.parent == "a"
    driving.stop(0.5)
    assert driving.get().asker.parent == "b"


def test_what_is_asked_over_a_newer_connection_is_of_no_turn() -> None:
    driving = DrivenAgent()
    driving.prompts.resume(prompt("a"))
    assert driver(driving) == 7
    assert driving.get().asker.parent == ""


def test_what_is_asked_in_the_owners_own_turn_is_certainly_of_no_caller() -> None:
    driving = DrivenAgent()
    driving.prompts.hooked(begins=True)  # the owner types
    driving.begin(prompt("a"), 0.0)
    assert not driving.get().is_certain
    assert driving.get("a").is_certain
    driving.stop(0.5)
    assert driving.get().is_certain


def test_of_a_program_without_hooks_only_what_names_its_prompt_is_certain() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a"), 0.0)
    assert not driving.get().is_certain
    assert not driving.get("of another agent").is_certain
    assert driving.get("a").is_certain


def test_a_hook_from_the_midst_of_a_turn_does_not_say_whose_turn_it_is() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a"), 0.0)  # over a connection that is new; the owner typed before
    driving.prompts.hooked()
    assert not driving.get().is_certain
    driving.prompts.hooked(begins=True)
    assert driving.get().is_certain


def test_after_the_end_of_its_turn_what_is_asked_is_not_certainly_of_the_caller() -> None:
    driving = DrivenAgent()
    driving.stop(0.0)
    driving.begin(prompt("a"), 0.0)
    assert driving.get().is_certain
    assert driving.stop(0.5) == []  # its caller waits for the reply still
    driving.prompts.hooked(begins=True)  # the owner types
    assert not driving.get().is_certain


def test_prompts_of_several_callers_are_certain_only_by_name() -> None:
    driving = DrivenAgent()
    driving.stop(0.0)
    driving.begin(prompt("a"), 0.0)
    driving.begin(prompt("b", asker=8), 0.0)
    assert not driving.get().is_certain
    assert driving.get("b").is_certain


@pytest.mark.parametrize("is_own", [True, False])
@pytest.mark.parametrize("over", ["answered", "told", "not waited for", ""])
def test_an_owners_agent_that_no_asker_waits_for_may_turn_to_its_asker(over: str, is_own: bool) -> None:
    driving = DrivenAgent()
    driving.prompts.hooked()  # else the answer would end the drive 5 s later
    driving.begin(prompt("a", tells=over == "told", chain=(ASKER, SELF), is_own=is_own), 0.0)
    if over == "answered":
        driving.answer("a", 0.5)
    elif over == "not waited for":
        driving.cancel("a", 0.5)
    assert driving.get().asker.chain == ((SELF,) if is_own and over else (ASKER, SELF))


def test_of_several_questions_of_the_owner_those_that_are_waited_for_count_for_cycles() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a", chain=(1, 2, SELF), is_own=True), 0.0)
    driving.begin(prompt("b", chain=(ASKER, SELF), is_own=True), 0.0)
    assert driving.get().asker.chain == (1, 2, SELF)
    driving.answer("a", 0.5)
    assert driving.get().asker.chain == (ASKER, SELF)


def test_a_strangers_question_beside_one_of_the_owner_keeps_the_agent_isolated() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a", asker=8, isolated=True, chain=(ASKER, SELF)), 0.0)
    driving.begin(prompt("b", is_own=True, chain=(4, SELF), tells=True), 0.0)
    found = driving.get()
    assert (found.isolated, found.asker.passed_by_stranger, found.asker.chain) == (True, True, (ASKER, SELF))
    driving.prompts.resume(prompt("c", is_own=True, chain=(SELF,)))
    assert driving.get("c").is_certain
    driving.stop(2.0)
    assert not driving.get("c").is_certain
    assert driving.get(now=2.0).isolated


def test_what_the_owners_agents_told_does_not_isolate_an_agent_that_may_reach_out_for_strangers() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a", is_own=True, chain=(1, ASKER, SELF), tells=True), 0.0)
    driving.begin(prompt("b", is_own=True, chain=(1, ASKER, SELF)), 0.0)
    driving.begin(prompt("c", asker=8, chain=(SELF,)), 0.0)
    assert driving.get("c").isolated  # the asker of "b" waits
    driving.cancel("b", 1.0)
    for chat_id in ("", "c"):
        found = driving.get(chat_id, 2.0)
        assert (found.asker.user_id, found.asker.chain) == (8, (SELF,))
        assert found.asker.passed_by_stranger
        assert not found.isolated
    assert driving.get("a", 2.0).isolated  # beside a stranger's question


def test_an_agent_whose_one_frame_is_its_whole_reply_works_for_its_caller_no_more() -> None:
    driving = DrivenAgent()
    driving.begin(prompt("a", asker=8), 0.0)
    driving.answer("a", 0.0)
    assert driver(driving, 0.0) == 8
    driving.prompts.end_drive("a")
    assert driver(driving, 0.0) is None
