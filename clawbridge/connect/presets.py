"""The table of `--preset`: how a coding agent's program is started, continued and read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from clawbridge.connect.codex_server import begin_codex, read_codex_server
from clawbridge.connect.program_events import (
    EventReader,
    ProgramRun,
    begin_claude,
    read_claude,
    read_codex,
    read_gemini,
    read_llm,
    read_openclaw,
)

Arguments = Sequence[str]
Access = Literal["read", "write", "ask"]


def no_arguments(conversation_id: str) -> Arguments:
    """A program that needs no arguments to begin or continue a conversation."""
    return ()


@dataclass(frozen=True, kw_only=True)
class AskingMode:
    """The way to run a program that asks for permissions: lines go both ways.

    `begin`: the first lines of its standard input; the conversation's id is empty for a new one.
    """

    arguments: Arguments
    begin: Callable[[ProgramRun, str], Iterable[str]]
    read_event: EventReader
    resume: Callable[[str], Arguments] = field(default=no_arguments)


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A program whose standard input is the question.

    `read_only`, `read_write`: arguments by the access the owner gives; None if the program has no such mode.
    `asking`: the mode in which the program asks for each permission, if it has one.
    `extra` arguments of the owner come after them, and then `begin` or `resume` with the conversation's id:
    begun with an id of ours, which the program may replace by its own; `end` comes last.
    """

    title: str
    program: str
    install: str
    read_only: Arguments | None
    read_write: Arguments
    resume: Callable[[str], Arguments]
    read_event: EventReader
    begin: Callable[[str], Arguments] = field(default=no_arguments)
    end: Arguments = ()
    is_one_value: bool = False
    asking: AskingMode | None = None

    def has_mode(self, access: Access) -> bool:
        """True if the program can be run with that access."""
        return {"read": self.read_only, "write": self.read_write, "ask": self.asking}[access] is not None

    def argv(self, *, access: Access, extra: Arguments, conversation_id: str, is_known: bool) -> list[str]:
        """The command line of one question."""
        if access == "ask" and (asking := self.asking):
            resumed = asking.resume(conversation_id) if is_known else ()
            return [self.program, *asking.arguments, *extra, *resumed]
        given = self.read_write if access == "write" else self.read_only
        own = (self.resume if is_known else self.begin)(conversation_id)
        return [self.program, *(given or ()), *extra, *own, *self.end]


CLAUDE = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
CLAUDE_ALONE = ("--strict-mcp-config", "--disable-slash-commands")
CLAUDE_ASKS = ("--permission-prompt-tool", "stdio", "--input-format", "stream-json")
CODEX = ("exec", "--json", "--skip-git-repo-check")
GEMINI = ("--extensions", "none", "--allowed-mcp-server-names", "none", "--output-format", "stream-json")
LLM = ("prompt", "--json", "--log")

PRESETS = {
    "claude": Preset(
        title="Claude Code",
        program="claude",
        install="npm install -g @anthropic-ai/claude-code",
        read_only=(*CLAUDE, *CLAUDE_ALONE, "--permission-mode", "dontAsk", "--tools", "Read,Glob,Grep"),
        read_write=(
            *(*CLAUDE, *CLAUDE_ALONE, "--permission-mode", "acceptEdits"),
            *("--tools", "Read,Glob,Grep,Edit,Write"),
        ),
        asking=AskingMode(
            arguments=(
                *(*CLAUDE, *CLAUDE_ALONE, *CLAUDE_ASKS, "--permission-mode", "default"),
                *("--tools", "Read,Glob,Grep,Edit,Write,Bash"),
            ),
            begin=begin_claude,
            read_event=read_claude,
            resume=lambda conversation_id: ("--resume", conversation_id),
        ),
        resume=lambda conversation_id: ("--resume", conversation_id),
        read_event=read_claude,
    ),
    "codex": Preset(
        title="Codex",
        program="codex",
        install="npm install -g @openai/codex",
        read_only=(*CODEX, "--sandbox", "read-only"),
        read_write=(*CODEX, "--sandbox", "workspace-write"),
        resume=lambda conversation_id: ("resume", conversation_id),
        read_event=read_codex,
        end=("-",),
        asking=AskingMode(arguments=("app-server",), begin=begin_codex, read_event=read_codex_server),
    ),
    "gemini": Preset(
        title="Gemini CLI",
        program="gemini",
        install="npm install -g @google/gemini-cli",
        read_only=(*GEMINI, "--approval-mode", "plan"),
        read_write=(*GEMINI, "--approval-mode", "auto_edit"),
        resume=lambda conversation_id: ("--resume", conversation_id),
        read_event=read_gemini,
    ),
    "openclaw": Preset(
        title="OpenClaw",
        program="openclaw",
        install="npm install -g openclaw",
        read_only=None,
        read_write=("agent", "--json", "--message-file", "/dev/stdin"),
        begin=lambda conversation_id: ("--session-id", conversation_id),
        resume=lambda conversation_id: ("--session-id", conversation_id),
        read_event=read_openclaw,
        is_one_value=True,
    ),
    "llm": Preset(
        title="LLM",
        program="llm",
        install="pip install llm",
        read_only=LLM,
        read_write=LLM,
        resume=lambda conversation_id: ("--conversation", conversation_id),
        read_event=read_llm,
        is_one_value=True,
    ),
}
