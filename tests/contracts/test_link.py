"""The link between two processes, over a real Redis: each end has its own post, as in life."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from agents.core.errors import NoReceipt, NotDelivered
from agents.core.post import Evict, ExtraPiece, Final, Message, Post, PostedChunk
from agents.core.types import Ask, AskTarget, OpenTurn, TurnEnding
from agents.core.waiting import RunningTurn, WaitingTurns
from agents.links.sockets import SocketLink
from agents.models.choices import Outcome, Surface
from agents.transcript.pieces import ArtifactPiece, Part, StatusNote, Usage
from hub.distributed import RedisPost
from lab.hub_storage import DistributedStorages
from lab.waiting import eventually
from tests.contracts.desks import Desk

pytestmark = [pytest.mark.distributed, pytest.mark.slow]


@dataclass
class End:
    """One process: its post, its link, who waits there, which claims it freed."""

    name: str
    post: Post
    released: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waiting = WaitingTurns(self.release)
        self.link = SocketLink(process_id=self.name, post=self.post, waiting=self.waiting)

    async def release(self, chat_id: str, late: str, usage: Usage | None) -> None:
        self.released.append(chat_id)


@pytest.fixture
async def ends(distributed_storages: DistributedStorages) -> AsyncIterator[tuple[End, End]]:
    url = distributed_storages.servers.redis_url(505)
    pair = End("home", RedisPost(url)), End("far", RedisPost(url))
    for end in pair:
        await end.post.start(end.name, end.link.take)
    yield pair
    for end in pair:
        await end.link.close()
        await end.post.close()


def turn(chat_id: str = "chat", *, connection_id: int = 7, process: str = "far") -> OpenTurn:
    ask = Ask(
        chat_id=chat_id,
        target=AskTarget(1, 1, "o/s"),
        caller_id=1,
        caller_login="alice",
        surface=Surface.A2A,
        question="what?",
        wait_s=30,
    )
    return OpenTurn(ask=ask, connection_id=connection_id, link_process=process, text="what?")


def running_turn(admitted: OpenTurn | None = None) -> RunningTurn:
    """A turn that was just admitted."""
    admitted = admitted or turn()
    running = RunningTurn(admitted.ask)
    running.admit(admitted)
    return running


async def replied(running: RunningTurn) -> TurnEnding:
    """The end of the wait for the reply."""
    if running.ending is None:
        await running.until_woken.wait(30)
    assert running.ending is not None
    return running.ending


async def test_a_prompt_and_its_reply_cross_and_arrive_whole(ends: tuple[End, End]) -> None:
    home, far = ends
    desk = Desk()
    far.link.attach(7, desk)
    running = running_turn()
    home.waiting.expect(running)
    await home.link.deliver(running)
    assert [(one.chat_id, one.text, one.home) for one in desk.prompts] == [("chat", "what?", "home")]
    pieces = [PostedChunk("chat", number, str(number)) for number in range(50)]
    await far.link.report("home", [*pieces, Final("chat", 50)])
    ending = await replied(running)
    assert (ending.outcome, ending.text) == (Outcome.COMPLETED, "".join(map(str, range(50))))


async def test_pieces_of_all_kinds_cross_in_order_with_what_the_agent_asks(ends: tuple[End, End]) -> None:
    home, far = ends
    running = running_turn()
    home.waiting.expect(running)
    parts = (Part(text="t"), Part(raw="YWI=", filename="f"), Part(data={"n": [1, None]}), Part(data=None))
    artifact = ArtifactPiece("a1", parts, name="n", metadata={"k": 1}, last_chunk=True)
    said = [
        ExtraPiece("chat", 0, StatusNote("hm")),
        PostedChunk("chat", 1, "text"),
        ExtraPiece("chat", 2, artifact),
    ]
    await far.link.report("home", said)
    await far.link.report("home", [Final("chat", 3, "which?", "input_required")])
    ending = await replied(running)
    assert (ending.outcome, ending.reason, ending.text) == (Outcome.COMPLETED, "input_required", "which?")
    assert running.pieces == [StatusNote("hm"), "text", artifact]


async def test_a_missing_piece_is_an_error(ends: tuple[End, End]) -> None:
    home, far = ends
    running = running_turn()
    home.waiting.expect(running)
    await far.link.report("home", [ExtraPiece("chat", 1, StatusNote("second"))])
    assert (await replied(running)).reason == "reply_lost"


async def test_the_parts_of_a_question_cross_and_so_does_its_cancel(ends: tuple[End, End]) -> None:
    home, far = ends
    desk = Desk()
    far.link.attach(7, desk)
    asked = turn()
    parts = (Part(text="what?"), Part(url="https://files.example/x", metadata={"k": []}))
    ask = replace(asked.ask, task_id="T", context_id="C", parts=parts, traceparent="00-a-b-01")
    asked = replace(asked, ask=ask)
    await home.link.deliver(running_turn(asked))
    [prompt] = desk.prompts
    assert (prompt.task_id, prompt.traceparent) == ("T", "00-a-b-01")
    assert prompt.parts == parts
    await home.link.withdraw(asked)

    async def told() -> bool:
        return desk.withdrawn == ["chat"]

    await eventually(told, "the cancel came")


async def test_a_connection_that_is_gone_provably_got_nothing(ends: tuple[End, End]) -> None:
    home, far = ends
    with pytest.raises(NotDelivered):
        await home.link.deliver(running_turn())
    desk = Desk()
    desk.is_over = True
    far.link.attach(7, desk)
    with pytest.raises(NotDelivered):
        await home.link.deliver(running_turn(turn("other")))
    with pytest.raises(NotDelivered):
        await home.link.deliver(running_turn(turn("third", process="never-was")))


async def test_a_draining_process_takes_no_prompts_of_others(ends: tuple[End, End]) -> None:
    home, far = ends
    far.link.attach(7, Desk())
    far.link.refuses_far_prompts = True
    with pytest.raises(NotDelivered):
        await home.link.deliver(running_turn())


async def test_without_a_receipt_the_outcome_is_unknown(
    ends: tuple[End, End], distributed_storages: DistributedStorages
) -> None:
    deaf = RedisPost(distributed_storages.servers.redis_url(505))

    async def ignore(message: Message) -> None:
        return None

    await deaf.start("deaf", ignore)
    with pytest.raises(NoReceipt):
        await ends[0].link.deliver(running_turn(turn(process="deaf")))
    await deaf.close()


async def test_a_final_is_sent_again_until_its_home_listens(ends: tuple[End, End]) -> None:
    home, far = ends
    running = running_turn()
    home.waiting.expect(running)
    await home.post.close()
    await far.link.report("home", [Final("chat", 0, "so")])
    await asyncio.sleep(0.2)
    assert running.ending is None
    await home.post.start("home", home.link.take)
    assert (await replied(running)).text == "so"


async def test_two_finals_of_one_chat_each_get_their_receipt(
    ends: tuple[End, End], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent may send a second final after the first: neither is sent again once its home has it."""
    monkeypatch.setattr("agents.links.sockets.FINAL_AGAIN_S", 0.3)
    home, far = ends
    await far.link.report("home", [Final("chat", 0, "first"), Final("chat", 0, "second")])
    await asyncio.sleep(1)  # three times as long as a final without a receipt waits
    assert home.released == ["chat", "chat"]


async def test_a_final_that_comes_late_frees_the_claim_at_its_home(ends: tuple[End, End]) -> None:
    home, far = ends
    await far.link.report("home", [Final("chat", 0, "late")])

    async def freed() -> bool:
        return home.released[:1] == ["chat"]

    await eventually(freed, "the claim is freed")


async def test_a_missing_chunk_is_an_error_not_a_shorter_reply() -> None:
    running = running_turn()
    running.take(PostedChunk("chat", 0, "a"))
    running.take(PostedChunk("chat", 2, "c"))
    running.take(Final("chat", 3))
    ending = await replied(running)
    assert (ending.outcome, ending.reason, ending.keeps_claim) == (Outcome.FAILED, "reply_lost", True)
    assert running.agent_is_done


async def test_a_missing_last_chunk_is_an_error_too() -> None:
    running = running_turn()
    running.take(PostedChunk("chat", 0, "a"))
    running.take(Final("chat", 2))
    ending = await replied(running)
    assert (ending.outcome, ending.reason, running.agent_is_done) == (Outcome.FAILED, "reply_lost", True)


async def test_a_socket_whose_place_was_taken_before_it_was_attached_leaves(ends: tuple[End, End]) -> None:
    """A rival, in another process, may have been registered in the moment between commit and attachment."""
    home, far = ends
    await home.link.send("far", Evict(7, same_program=False))
    await asyncio.sleep(0.2)  # it comes before
    loser, winner = Desk(), Desk()
    far.link.attach(7, loser)
    far.link.attach(8, winner)

    async def left() -> bool:
        return loser.is_over

    await eventually(left, "the loser leaves")
    assert not winner.is_over
