"""Answers questions with the program of a preset, and remembers the program's conversation of each A2A context."""

import asyncio
import hashlib
import json
import logging
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from uuid import uuid4
from weakref import WeakValueDictionary

from clawbridge.connect.answers import AnswerFailed, ProgramAnswer
from clawbridge.connect.command import Command
from clawbridge.connect.frames import Question
from clawbridge.connect.presets import PRESETS, Access, Preset
from clawbridge.connect.program_events import ProgramOutput
from clawbridge.connect.reply_parts import ReplyEnd, ReplyPart

logger = logging.getLogger(__name__)

MAX_CONVERSATIONS = 1_000


@dataclass
class ProgramConversation:
    """A conversation of one caller. `program_id`: the program's id for it, empty while there is none.

    `counted`: the input and output tokens that the program has counted in it, if it counts from turn to turn.
    """

    program_id: str = ""
    counted: Sequence[int] = ()

    def to_json(self) -> object:
        """The form in the file: the id alone, or a list of the id and the numbers."""
        return [self.program_id, *self.counted] if self.counted else self.program_id

    @classmethod
    def from_json(cls, stored: object) -> Self:
        """Read that form; other values are no conversation."""
        program_id, *rest = stored if isinstance(stored, list) and stored else [stored]
        counted = [one for one in rest if type(one) is int]
        if not isinstance(program_id, str) or len(counted) not in (0, 2):
            return cls()
        return cls(program_id, counted)


class ProgramConversations:
    """The conversations of one preset, in a file that only its owner can read; the oldest of 1,000 is dropped.

    The asker is part of the key: a caller who guesses the context id of another caller gets a new conversation.
    `place` tells programs and directories apart. Without a path nothing outlives the process.
    """

    def __init__(self, path: Path | None, *, place: str) -> None:
        self._path = path
        self._place = place
        self._kept = self._load()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def claim(self, question: Question) -> AsyncIterator[ProgramConversation]:
        """The conversation of a question, for one question at a time; what it is afterwards is stored."""
        if not question.context_id:
            yield ProgramConversation()
            return
        key = self._key(question)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            conversation = replace(self._kept.get(key, ProgramConversation()))
            try:
                yield conversation
            finally:
                self._store(key, conversation)

    def _key(self, question: Question) -> str:
        named = json.dumps([self._place, question.asker, question.context_id])
        return hashlib.sha256(named.encode()).hexdigest()

    def _store(self, key: str, conversation: ProgramConversation) -> None:
        before = self._kept.pop(key, ProgramConversation())
        if conversation.program_id:
            self._kept[key] = conversation
        for oldest in list(self._kept)[:-MAX_CONVERSATIONS]:
            del self._kept[oldest]
        if self._path and conversation != before:
            self._save(self._path)

    def _load(self) -> dict[str, ProgramConversation]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(stored, dict):
                raise ValueError("not an object")
        except (OSError, ValueError) as problem:
            logger.warning("%s is not usable, conversations begin anew: %s", self._path, problem)
            return {}
        return {key: ProgramConversation.from_json(one) for key, one in stored.items()}

    def _save(self, path: Path) -> None:
        new = path.with_name(f"{path.name}.new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump({key: one.to_json() for key, one in self._kept.items()}, file)
            new.replace(path)
        except OSError as problem:
            logger.warning("%s cannot be written, a restart forgets conversations: %s", path, problem)


NO_SUCH_MODE = {
    "read": "has no read-only mode; its own configuration says what it may do. Want --access write",
    "ask": "asks no permission. Want --access read or write",
}


class PresetAnswer(ProgramAnswer):
    """Runs a preset's program once per question, in one directory; a context continues its conversation."""

    def __init__(
        self,
        preset: Preset,
        *,
        directory: Path,
        access: Access,
        extra: Sequence[str],
        conversations: ProgramConversations,
    ) -> None:
        self._preset = preset
        self._directory = directory
        self._access = access
        self._extra = extra
        self._conversations = conversations
        self._commands: set[Command] = set()

    async def __call__(self, question: Question) -> AsyncIterator[ReplyPart]:
        """Yield what the program says.

        Raises:
            AnswerFailed: the program could not be started, its exit status is not zero, or it printed no answer.
        """
        preset, asking = self._preset, self._preset.asking if self._access == "ask" else None
        read_event = asking.read_event if asking else preset.read_event
        output = ProgramOutput(preset.program, read_event, is_one_value=preset.is_one_value)
        async with self._conversations.claim(question) as conversation:
            argv = preset.argv(
                access=self._access,
                extra=self._extra,
                conversation_id=conversation.program_id or str(uuid4()),
                is_known=bool(conversation.program_id),
            )
            command = Command(argv, reader=output, keeps_input=asking is not None, directory=self._directory)
            output.run.question = text = as_prompt(question.text)
            output.run.write_line = command.write_line
            if conversation.program_id:
                output.run.counted = conversation.counted
            if asking:
                text = "".join(f"{line}\n" for line in asking.begin(output.run, conversation.program_id))
            self._commands.add(command)
            has_failed = False
            try:
                async with aclosing(command(replace(question, text=text))) as parts:
                    async for part in parts:
                        has_failed = isinstance(part, ReplyEnd)
                        yield part
                if not output.run.is_complete:
                    raise AnswerFailed(f"{preset.program} ended without an answer that this connector can read")
            except AnswerFailed:
                has_failed = True
                raise
            finally:
                self._commands.discard(command)
                # A program that failed before it began may have lost the conversation: the next one is new.
                if output.run.conversation_id or has_failed:
                    conversation.program_id = output.run.conversation_id
                    conversation.counted = output.run.counted if any(output.run.counted) else ()

    def kill(self) -> None:
        """End every running program at once."""
        for command in self._commands:
            command.kill()


def as_prompt(text: str) -> str:
    """The question, such that no program takes it for a command of its own, as `/config`."""
    return f"Question: {text}" if text.lstrip()[:1] in ("/", "!", "@", "#") else text


def build_preset_answer(
    name: str, *, directory: Path | None, access: Access, extra: Sequence[str], store: Path | None
) -> PresetAnswer:
    """Make the answer of a preset.

    Raises:
        ValueError: the program, the directory or the access is missing; the text is one line.
    """
    preset = PRESETS[name]
    if directory is None:
        raise ValueError("--preset: want --directory PATH, where the program works and reads files")
    if not directory.is_dir():
        raise ValueError(f"--directory {directory}: no such directory")
    if not preset.has_mode(access):
        raise ValueError(f"--preset {name}: {preset.program} {NO_SUCH_MODE[access]}")
    if shutil.which(preset.program) is None:
        raise ValueError(f"--preset {name}: {preset.program} is not installed ({preset.install})")
    place = directory.resolve()
    conversations = ProgramConversations(store, place=f"{name} {place}")
    return PresetAnswer(preset, directory=place, access=access, extra=extra, conversations=conversations)
