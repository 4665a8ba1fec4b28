"""The table of `--preset`: how a coding agent's program is started, continued and read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from connect.program_events import (
    EventReader,
    read_claude,
    read_codex,
    read_gemini,
    read_llm,
    read_openclaw,
    write_claude,
)

Arguments = Sequence[str]
Access = Literal["read", "write", "ask"]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One program; the question is its standard input.

    `read_only`, `read_write`, `asking`: arguments by the access the owner gives; None if the program has no such
    mode. A program that asks gets the question as a line that `question_line` makes, and then the decisions.
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
    begin: Callable[[str], Arguments] = field(default=lambda conversation_id: ())
    end: Arguments = ()
    is_one_value: bool = False
    asking: Arguments | None = None
    question_line: Callable[[str], str] = field(default=lambda text: text)

    def access_arguments(self, access: Access) -> Arguments | None:
        """The arguments for that access, None if the program has no such mode."""
        return {"read": self.read_only, "write": self.read_write, "ask": self.asking}[access]

    def argv(self, *, access: Access, extra: Arguments, conversation_id: str, is_known: bool) -> list[str]:
        """The command line of one question."""
        own = (self.resume if is_known else self.begin)(conversation_id)
        return [self.program, *(self.access_arguments(access) or ()), *extra, *own, *self.end]


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
        asking=(
            *(*CLAUDE, *CLAUDE_ALONE, *CLAUDE_ASKS, "--permission-mode", "default"),
            *("--tools", "Read,Glob,Grep,Edit,Write,Bash"),
        ),
        question_line=write_claude,
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
