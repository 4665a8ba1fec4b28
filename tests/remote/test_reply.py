"""Events of a remote server become pieces: caps, gathered text, and tasks looked at again."""

from typing import Any

import pytest

from agents.core.post import ExtraPiece, PostedChunk
from agents.core.waiting import text_of
from agents.links.remote.events import read_event
from agents.links.remote.reply import RemoteReply, ReplyTooLarge
from agents.transcript.pieces import (
    MAX_PIECES,
    MAX_REPLY_BYTES,
    ArtifactPiece,
    LastWords,
    Part,
    Piece,
    StatusNote,
    Usage,
)

Json = dict[str, Any]


class Told:
    """A reply and the pieces that it passed on."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.reply = RemoteReply("chat", self._take)

    def _take(self, message: PostedChunk | ExtraPiece) -> None:
        assert message.seq == len(self.pieces)
        self.pieces.append(message.text if isinstance(message, PostedChunk) else message.piece)

    @property
    def artifacts(self) -> dict[str, list[Part]]:
        """The artifacts that the pieces make, in their order."""
        made: dict[str, list[Part]] = {}
        for piece in self.pieces:
            if isinstance(piece, ArtifactPiece):
                parts = made.setdefault(piece.artifact_id, [])
                parts[:] = [*(parts if piece.append else ()), *piece.parts]
        return made

    def update(self, artifact_id: str, *parts: Json, append: bool = False, **more: Any) -> None:
        artifact = {"artifactId": artifact_id, "parts": list(parts), **more}
        self.take({"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": append}})

    def repeat(self, times: int, *parts: Json, append: bool = False) -> None:
        for _ in range(times):
            self.update("a", *parts, append=append)

    def look(self, state: str, *artifacts: tuple[str, list[Json]]) -> None:
        """The server shows the whole task."""
        self.take({"task": task(state, *artifacts)})

    def end(self, state: str = "COMPLETED", *parts: Json) -> None:
        message = {"message": {"role": "ROLE_AGENT", "parts": list(parts)}} if parts else {}
        self.take({"statusUpdate": {"taskId": "t", "status": {"state": f"TASK_STATE_{state}", **message}}})

    def take(self, event: Json) -> None:
        self.reply.take(read_event(event))


def task(state: str, *artifacts: tuple[str, list[Json]]) -> Json:
    shown = [{"artifactId": artifact_id, "parts": parts} for artifact_id, parts in artifacts]
    return {"id": "t", "status": {"state": f"TASK_STATE_{state}"}, "artifacts": shown}


def known(*artifacts: tuple[str, list[Json]]) -> Told:
    """A reply to a question that continues a task with these artifacts."""
    told = Told()
    told.reply.is_continued = True
    event = read_event({"task": task("INPUT_REQUIRED", *artifacts)})
    told.reply.know(event)  # type: ignore[arg-type]
    return told


def text(words: str) -> Json:
    return {"text": words}


def test_interleaved_words_keep_apart_within_the_pieces() -> None:
    told = Told()
    for number in range(3000):
        for one in "ab":
            told.update(one, text(f"{one}{number} "), append=number > 0)
    told.end()
    wanted = {one: [Part(text=f"{one}{number} ") for number in range(3000)] for one in "ab"}
    assert {one: "".join(str(part.text) for part in parts) for one, parts in told.artifacts.items()} == {
        one: "".join(str(part.text) for part in parts) for one, parts in wanted.items()
    }
    assert told.artifacts["a"][:1000] == wanted["a"][:1000]
    assert len(told.pieces) < 600
    assert text_of(told.pieces).startswith("a0 a1 ")


def test_gathered_text_comes_before_what_replaces_it_or_follows_it() -> None:
    told = Told()
    for number in range(600):
        told.update("a", text(f"{number} "), append=number > 0)
    told.update("a", {"data": 1}, append=True)
    assert told.artifacts["a"][-2:] == [Part(text="599 "), Part(data=1)]
    told.update("a", text("x"), append=True)
    told.update("a", text("new"))
    told.end()
    assert told.artifacts == {"a": [Part(text="new")]}
    assert text_of(told.pieces) == "new"


@pytest.mark.parametrize("parts", [[text("x" * 9_999)], [{"data": {"k": "x" * 9_999}}], [text("")] * 900])
def test_replaced_artifacts_count_each_time(parts: list[Json]) -> None:
    told = Told()
    with pytest.raises(ReplyTooLarge):
        told.repeat(MAX_PIECES, *parts)
    assert (
        sum(len(piece.parts) for piece in told.pieces if isinstance(piece, ArtifactPiece)) < MAX_REPLY_BYTES / 10
    )


@pytest.mark.parametrize("words", ["", "x"])
def test_endless_small_appends_are_too_large(words: str) -> None:
    told = Told()
    told.update("a", text("x"))
    with pytest.raises(ReplyTooLarge):
        told.repeat(MAX_REPLY_BYTES, *[text(words)] * 100, append=True)
    assert len(told.pieces) < MAX_PIECES


def test_a_reply_of_the_whole_size_passes() -> None:
    told = Told()
    told.update("a", text("x" * MAX_REPLY_BYTES))
    told.end()
    assert told.reply.end is not None


def test_names_count() -> None:
    told = Told()
    with pytest.raises(ReplyTooLarge):
        told.update("a", text("x"), name="n" * MAX_REPLY_BYTES)


def test_a_task_that_is_looked_at_again_tells_what_is_new() -> None:
    told = Told()
    told.look("WORKING", ("a", [text("1")]))
    told.look("WORKING", ("a", [text("1")]))
    told.look("WORKING", ("a", [text("1"), {"data": {"k": 1, "l": 2}}]), ("b", [text("2")]))
    told.look("COMPLETED", ("a", [text("1"), {"data": {"l": 2, "k": 1}}]), ("b", [text("3")]))
    told.end()
    assert told.artifacts == {"a": [Part(text="1"), Part(data={"k": 1, "l": 2})], "b": [Part(text="3")]}
    assert [(piece.artifact_id, piece.append, piece.last_chunk) for piece in told.pieces] == [  # type: ignore[union-attr]
        ("a", False, False),
        ("a", True, False),
        ("b", False, False),
        ("b", False, True),
    ]


def test_a_later_turn_tells_what_changed() -> None:
    told = known(("plan", [{"data": "v1"}]), ("log", [text("one ")]), ("", [text("?")]))
    told.look("WORKING", ("plan", [{"data": "v1"}]), ("log", [text("one ")]), ("", [text("?")]))
    assert told.pieces == []
    told.update("log", text("two"), append=True)
    told.update("plan", {"data": "v2"})
    told.update("", text("!"), append=True)
    told.end()
    assert told.artifacts == {"log": [Part(text="two")], "plan": [Part(data="v2")], "remote-3": [Part(text="!")]}
    assert told.pieces[0] == ArtifactPiece("log", (Part(text="two"),), append=True, lead="")
    assert text_of(told.pieces) == "two\n\n!"


def test_an_append_to_what_never_was_begins_it() -> None:
    told = Told()
    told.update("a", text("x"), append=True)
    assert told.pieces == [ArtifactPiece("a", (Part(text="x"),), lead="")]


def test_the_last_words_are_the_reply_of_a_task_without_text() -> None:
    told = Told()
    told.update("d", {"data": 1})
    told.end("COMPLETED", text("done"), {"data": 2})
    assert told.pieces[-1] == LastWords((Part(text="done"), Part(data=2)))
    assert text_of(told.pieces) == "done"


def said(message_id: str, *parts: Json, role: str = "ROLE_AGENT", **more: Any) -> Json:
    return {"messageId": message_id, "role": role, "parts": list(parts), **more}


def test_interim_messages_are_passed_on_once_however_often_the_task_is_read() -> None:
    told = Told()
    asked, reading = said("q", text("?"), role="ROLE_USER"), said("n1", text("reading"), metadata={"m": 1})
    earlier = [said("q0", text("before"), role="ROLE_USER"), said("n0", text("an earlier turn"))]
    told.take({"task": {**task("WORKING"), "history": [*earlier, asked, reading]}})
    thinking = {"taskId": "t", "status": {"state": "TASK_STATE_WORKING", "message": said("n2", text("thinking"))}}
    told.take({"statusUpdate": thinking})
    history = [*earlier, asked, reading, thinking["status"]["message"], said("n3", {"data": 7})]
    told.take({"task": {**task("COMPLETED", ("a", [text("x")])), "history": [*history, said("r", text("x"))]}})
    notes = [piece for piece in told.pieces if isinstance(piece, StatusNote)]
    assert notes == [
        StatusNote("reading", {"m": 1}),
        StatusNote("thinking"),
        StatusNote("", parts=(Part(data=7),)),
    ]


def test_the_last_that_was_said_is_the_reply_of_a_completed_task_that_holds_nothing_else() -> None:
    told = Told()
    history = [said("q", text("?"), role="ROLE_USER"), said("n", text("reading")), said("r", text("done"))]
    told.take({"task": {**task("COMPLETED"), "history": history}})
    assert told.pieces == [StatusNote("reading"), LastWords((Part(text="done"),))]


@pytest.mark.parametrize("state", ["FAILED", "REJECTED", "CANCELED"])
def test_an_end_without_an_answer_keeps_what_is_more_than_text(state: str) -> None:
    told, plain = Told(), Told()
    told.end(state, text("broke"), {"data": {"code": 7}})
    plain.end(state, text("broke"))
    assert told.pieces == [LastWords((Part(text="broke"), Part(data={"code": 7})))]
    assert plain.pieces == []
    for one in (told, plain):
        assert one.reply.end is not None
        assert one.reply.end.text == "broke"


@pytest.mark.parametrize("kind", ["task", "statusUpdate", "message"])
def test_the_event_that_ends_the_turn_says_what_it_used(kind: str) -> None:
    ends: Json = {
        "task": task("COMPLETED"),
        "statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}},
        "message": {"role": "ROLE_AGENT", "parts": [{"text": "so"}]},
    }
    told = Told()
    if kind != "message":
        told.take({"task": task("WORKING") | {"metadata": {"usage": {"costUsd": 5}}}})
    told.take({kind: ends[kind] | {"metadata": {"usage": {"inputTokens": 3, "costUsd": 0.5}}}})
    assert told.reply.end is not None
    assert told.reply.end.usage == Usage(3, None, 500_000)


@pytest.mark.parametrize("metadata", [None, {}, {"usage": {"costUsd": -1}}, {"usage": "free"}, [1]])
def test_without_a_sound_usage_the_reply_stands_alone(metadata: object) -> None:
    told = Told()
    told.take({"task": task("WORKING") | {"metadata": {"usage": {"costUsd": 5}}}})
    told.take({"task": task("COMPLETED") | {"metadata": metadata}})
    assert told.reply.end is not None
    assert told.reply.end.usage is None


def whole(*parts: Json) -> Json:
    """The update that closes the artifact `a`."""
    artifact = {"artifactId": "a", "parts": list(parts)}
    return {"artifactUpdate": {"taskId": "t", "artifact": artifact, "lastChunk": True}}


@pytest.mark.parametrize("words", [2, 600])
def test_a_whole_artifact_after_its_pieces_adds_nothing_to_the_reply(words: int) -> None:
    told = Told()
    for number in range(words):
        told.update("a", text(f"{number} "), append=number > 0)
    parts = tuple(Part(text=f"{number} ") for number in range(words))
    told.take(whole(*(text(f"{number} ") for number in range(words))))
    again = ArtifactPiece("a", parts, last_chunk=True, lead="")
    assert told.pieces[-1] == ArtifactPiece("a", (), append=True, last_chunk=True, lead="", again=again)
    assert told.artifacts == {"a": list(parts)}
    assert text_of(told.pieces) == "".join(str(part.text) for part in parts)


def test_a_whole_artifact_after_pieces_that_were_joined_is_a_mark_alone() -> None:
    told = Told()
    words = [text("x")] * 10_000
    for number in range(0, len(words), 5):
        told.update("a", *words[:5], append=number > 0)
    told.take(whole(*words))
    assert told.pieces[-1] == ArtifactPiece("a", (), append=True, last_chunk=True, lead="")


def test_a_whole_artifact_that_an_earlier_turn_made_is_part_of_the_reply() -> None:
    told = known(("a", [text("1")]))
    told.take(whole(text("1")))
    assert told.pieces == [ArtifactPiece("a", (Part(text="1"),), last_chunk=True, lead="")]


def test_a_whole_artifact_that_is_another_replaces_its_pieces() -> None:
    told = Told()
    told.update("a", text("1"))
    told.take(whole(text("2")))
    told.end()
    assert told.artifacts == {"a": [Part(text="2")]}


def test_the_first_whole_artifact_after_its_pieces_does_not_count() -> None:
    told = Told()
    half = [text("x" * (MAX_REPLY_BYTES // 4))] * 2
    told.update("a", half[0])
    told.update("a", half[1], append=True)
    told.update("b", text("x" * (MAX_REPLY_BYTES // 3)))
    told.take(whole(*half))
    with pytest.raises(ReplyTooLarge):
        told.take(whole(*half))
