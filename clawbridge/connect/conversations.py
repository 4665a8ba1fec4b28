"""Remembers which conversation of a program continues which A2A context."""

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self
from weakref import WeakValueDictionary

from clawbridge.connect.frames import Question

logger = logging.getLogger(__name__)

MAX_CONVERSATIONS = 1_000


@dataclass
class Conversation:
    """One caller's conversation. `program_id`: the program's id for it, empty while there is none.

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


class Conversations:
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
    async def claim(self, question: Question) -> AsyncIterator[Conversation]:
        """The conversation of a question, for one question at a time; what it is afterwards is stored."""
        if not question.context_id:
            yield Conversation()
            return
        key = self._key(question)
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            conversation = replace(self._kept.get(key, Conversation()))
            try:
                yield conversation
            finally:
                self._store(key, conversation)

    def _key(self, question: Question) -> str:
        named = json.dumps([self._place, question.asker, question.context_id])
        return hashlib.sha256(named.encode()).hexdigest()

    def _store(self, key: str, conversation: Conversation) -> None:
        before = self._kept.pop(key, Conversation())
        if conversation.program_id:
            self._kept[key] = conversation
        for oldest in list(self._kept)[:-MAX_CONVERSATIONS]:
            del self._kept[oldest]
        if self._path and conversation != before:
            self._save(self._path)

    def _load(self) -> dict[str, Conversation]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(stored, dict):
                raise ValueError("not an object")
        except (OSError, ValueError) as problem:
            logger.warning("%s is not usable, conversations begin anew: %s", self._path, problem)
            return {}
        return {key: Conversation.from_json(one) for key, one in stored.items()}

    def _save(self, path: Path) -> None:
        new = path.with_name(f"{path.name}.new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump({key: one.to_json() for key, one in self._kept.items()}, file)
            new.replace(path)
        except OSError as problem:
            logger.warning("%s cannot be written, a restart forgets conversations: %s", path, problem)
