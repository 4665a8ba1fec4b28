"""Remembers which conversation of a program continues which A2A context."""

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakValueDictionary

from clawbridge.connect.frames import Question

logger = logging.getLogger(__name__)

MAX_CONVERSATIONS = 1_000


@dataclass
class Conversation:
    """One caller's conversation. `program_id`: the program's id for it, empty while there is none."""

    program_id: str = ""


class Conversations:
    """The conversations of one preset, in a file that only its owner can read; the oldest of 1,000 is dropped.

    The asker is part of the key: a caller who guesses the context id of another caller gets a new conversation.
    `place` tells programs and directories apart. Without a path nothing outlives the process.
    """

    def __init__(self, path: Path | None, *, place: str) -> None:
        self._path = path
        self._place = place
        self._ids = self._load()
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
            conversation = Conversation(self._ids.get(key, ""))
            try:
                yield conversation
            finally:
                self._store(key, conversation.program_id)

    def _key(self, question: Question) -> str:
        named = json.dumps([self._place, question.asker, question.context_id])
        return hashlib.sha256(named.encode()).hexdigest()

    def _store(self, key: str, program_id: str) -> None:
        before = self._ids.pop(key, "")
        if program_id:
            self._ids[key] = program_id
        for oldest in list(self._ids)[:-MAX_CONVERSATIONS]:
            del self._ids[oldest]
        if self._path and program_id != before:
            self._save(self._path)

    def _load(self) -> dict[str, str]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            stored = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(stored, dict):
                raise ValueError("not an object")
        except (OSError, ValueError) as problem:
            logger.warning("%s is not usable, conversations begin anew: %s", self._path, problem)
            return {}
        return {str(key): str(program_id) for key, program_id in stored.items()}

    def _save(self, path: Path) -> None:
        new = path.with_name(f"{path.name}.new")
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(self._ids, file)
            new.replace(path)
        except OSError as problem:
            logger.warning("%s cannot be written, a restart forgets conversations: %s", path, problem)
