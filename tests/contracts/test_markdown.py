"""Texts of an agent whose card names Markdown before plain text say so where the dialect has a field for it."""

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from a2a_bridge.service.tasks.pieces import answer_message, end_of, events_of
from a2a_bridge.wire.dialects.v03 import shapes as v03
from a2a_bridge.wire.dialects.v1 import shapes as v1
from a2a_bridge.wire.task import State, Task, after
from agents.core.ledger.state import LookUp, look_up, text_type_of
from agents.core.types import SettledTurn
from agents.models.choices import Interruption, Outcome
from agents.transcript.pieces import ArtifactPiece, Part, StatusNote
from tests.contracts.rows import published
from tests.contracts.test_approvals import task_after

OWN = ArtifactPiece("a1", (Part(text="<b>", media_type="text/html"), Part(text="plain")))


def answered(task: Task, text: str, reason: str = "") -> Task:
    ended = SettledTurn(Outcome.COMPLETED, reason, text)
    return after(task, end_of(task, ended, wait_s=60, at="now"))


def marked() -> Task:
    return replace(task_after(), text_type="text/markdown")


def test_a_reply_in_pieces_and_a_whole_one_are_marked_in_1_0() -> None:
    pieces = after(marked(), events_of(marked(), ["# a", "b"], "now"))
    for task, texts in ((pieces, ["# a", "b"]), (answered(marked(), "# whole"), ["# whole"])):
        [artifact] = v1.render_task(task, None).artifacts or []
        assert artifact.parts == tuple(Part(text=text, media_type="text/markdown") for text in texts)
        assert answer_message(task).parts == (Part(text="".join(texts), media_type="text/markdown"),)
        [old] = to_builtins(v03.render_task(task, None).artifacts)
        assert [set(part) for part in old["parts"]] == [{"kind", "text"}] * len(texts)


def test_notes_and_questions_of_the_agent_are_marked_and_words_of_the_hub_are_not() -> None:
    task = after(marked(), events_of(marked(), [StatusNote("*reading*")], "now"))
    assert task.message is not None
    assert task.message.parts[0].media_type == "text/markdown"
    asked = answered(task, "which *one*?", Interruption.INPUT_REQUIRED)
    assert asked.message is not None
    assert asked.message.parts[0].media_type == "text/markdown"
    failed = after(task, end_of(task, SettledTurn(Outcome.FAILED, "timeout"), wait_s=60, at="now"))
    assert failed.message is not None
    assert (failed.state, failed.message.parts[0].media_type) == (State.FAILED, "")


def test_parts_that_are_relayed_keep_their_own_type() -> None:
    task = after(marked(), events_of(marked(), [OWN], "now"))
    assert task.artifacts[0].parts == OWN.parts


def test_the_first_of_the_cards_text_types_counts() -> None:
    for modes, text_type in [
        ('["text/markdown", "text/plain"]', "text/markdown"),
        ('["application/json", "text/markdown"]', "text/markdown"),
        ('["text/plain", "text/markdown"]', ""),
        ("[]", ""),
    ]:
        assert text_type_of(modes) == text_type, (modes, text_type)


@pytest.mark.django_db
@pytest.mark.ledger
def test_it_is_looked_up_with_the_agent() -> None:
    for modes in [[], ["text/markdown", "text/plain"]]:
        agent = published(output_modes=modes)
        [found] = look_up([LookUp(None, agent.ref.handle)])
        assert found.agent is not None, modes
        assert found.agent.text_type == ("text/markdown" if modes else ""), modes
