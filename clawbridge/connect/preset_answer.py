"""Answers questions with the program of a preset."""

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from clawbridge.connect.answers import AnswerFailed
from clawbridge.connect.command import Command
from clawbridge.connect.conversations import Conversations
from clawbridge.connect.frames import Question
from clawbridge.connect.presets import PRESETS, Access, Preset
from clawbridge.connect.program_events import ProgramOutput
from clawbridge.connect.reply_parts import End, ReplyPart

NO_SUCH_MODE = {
    "read": "has no read-only mode; its own configuration says what it may do. Want --access write",
    "ask": "asks no permission. Want --access read or write",
}


class PresetAnswer:
    """Runs a preset's program once per question, in one directory; a context continues its conversation."""

    def __init__(
        self,
        preset: Preset,
        *,
        directory: Path,
        access: Access,
        extra: Sequence[str],
        conversations: Conversations,
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
            AnswerFailed: it could not be started, its exit status is not zero, or it printed no answer.
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
                        has_failed = isinstance(part, End)
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
    conversations = Conversations(store, place=f"{name} {place}")
    return PresetAnswer(preset, directory=place, access=access, extra=extra, conversations=conversations)
