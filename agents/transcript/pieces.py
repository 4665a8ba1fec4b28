"""The pieces of a reply besides text: parts, status notes, artifacts; and the usage of its turn.

Part, artifact and status are those of A2A 1.0, section 4; every dialect of the bridge renders them from here.
The bounds of one reply are the same on every link.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from kit.money import to_microusd, to_usd_or_none

MAX_PIECES = 1_000
MAX_REPLY_BYTES = 1_048_576
MAX_TURN_USD = 10_000
MAX_TURN_TOKENS = 10**12

Json = dict[str, Any]


class Part(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Content of exactly one kind: text, raw (standard base64), url, or data (any JSON)."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    media_type: str = ""
    filename: str = ""
    metadata: Json | UnsetType = UNSET

    @property
    def is_file(self) -> bool:
        """True if the content is a file: its bytes, or its address."""
        return self.text is UNSET and self.data is UNSET


LEFT_OUT = "leftOut"  # in metadata: what a surface that shows less than all parts does not show, a line for each


def describe_left_out(where: str, part: Part) -> str:
    """A line about a part that is not shown."""
    kind = next((one for one in ("text", "raw", "url", "data") if getattr(part, one) is not UNSET), "part")
    return f"{where}: {kind} {part.filename}".rstrip()


class StatusNote(Struct, frozen=True, rename="camel", tag="status", omit_defaults=True):
    """The agent says how far it is, while it works on.

    `parts`: the whole note, when it is more than text. `status_metadata`: that of the state; `metadata` is that of
    the note.
    """

    text: str
    metadata: Json | UnsetType = UNSET
    parts: tuple[Part, ...] = ()
    status_metadata: Json | UnsetType = UNSET


class ArtifactPiece(Struct, frozen=True, rename="camel", tag="artifact", omit_defaults=True):
    """An artifact, or with `append` more parts for one that is there; `last_chunk` closes it.

    `lead`: the artifact's text is part of the reply's text, and a reader of the growing reply sees `lead` before
    the text of this piece. None: its text is not part of the reply's text.

    `again`: of a piece without parts, the whole artifact as a remote server sent it to close it. Pieces of the
    turn made the same already: readers of the reply ignore `again`, and streams of A2A 1.0 show it.
    """

    artifact_id: str
    parts: tuple[Part, ...]
    name: str = ""
    description: str = ""
    metadata: Json | UnsetType = UNSET
    append: bool = False
    last_chunk: bool = False
    extensions: tuple[str, ...] = ()
    lead: str | None = None
    again: "ArtifactPiece | None" = None


class LastWords(Struct, frozen=True, rename="camel", tag="words", omit_defaults=True):
    """The last piece of a reply: the message of the state that the turn ends in; without parts, no message.

    `status_metadata`: that of the state; `metadata` is that of the message.
    """

    parts: tuple[Part, ...]
    metadata: Json | UnsetType = UNSET
    status_metadata: Json | UnsetType = UNSET


class ApprovalAsked(Struct, frozen=True, gc=False, rename="camel", tag="approval", omit_defaults=True):
    """The agent's program waits for a permission to use a tool, which the caller may give."""

    request_id: str
    tool: str
    description: str = ""


class ApprovalDecided(Struct, frozen=True, rename="camel", tag="decided", omit_defaults=True):
    """The news that such a request was decided, by the caller or an operator of the session, or ran out."""

    request_id: str
    tool: str
    decision: Literal["allow", "deny", "expired"]


Extra = StatusNote | ArtifactPiece | LastWords | ApprovalAsked | ApprovalDecided
Piece = str | Extra

Tokens = Annotated[int, Meta(ge=0, le=MAX_TURN_TOKENS)]


class Usage(Struct, frozen=True, gc=False, omit_defaults=True):
    """The usage of a turn; None: not reported. `cost_microusd`: millionths of a US dollar."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_microusd: int | None = None


class ReportedUsage(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The usage of a turn as agents write it. `cost_usd` is rounded to a millionth of a dollar."""

    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cost_usd: Annotated[float, Meta(ge=0, le=MAX_TURN_USD)] | None = None

    @property
    def kept(self) -> Usage | None:
        """The usage as the hub keeps it; None when nothing is reported."""
        cost = None if self.cost_usd is None else to_microusd(self.cost_usd)
        usage = Usage(self.input_tokens, self.output_tokens, cost)
        return None if usage == Usage() else usage


def find_usage(metadata: Any) -> Usage | None:
    """The usage in the metadata of an A2A object; None without one, and for one of another shape."""
    try:
        return msgspec.convert(metadata, _UsageMetadata).usage.kept
    except msgspec.ValidationError:
        return None


class _UsageMetadata(Struct):
    usage: ReportedUsage


def show_usage(usage: Usage) -> Json:
    """The reported usage as A2A metadata and REST show it, with the names that agents use."""
    shown = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "costUsd": to_usd_or_none(usage.cost_microusd),
    }
    return {name: value for name, value in shown.items() if value is not None}


def size_of(text: str) -> int:
    """Bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def text_in(parts: Iterable[Part]) -> str:
    """The text of all parts as one string."""
    text = ""
    for part in parts:
        if part.text is not UNSET:
            text += part.text
    return text


def plain_text_in(parts: Iterable[Part]) -> str:
    """The text of parts that a reader gets in line: not that of files, nor of formats such as JSON."""
    named = "text/"
    return text_in(part for part in parts if (part.media_type or named).startswith(named) and not part.filename)


def joined_texts(texts: Iterable[str]) -> str:
    """The texts of several artifacts as the text of one reply."""
    return "\n\n".join(filter(None, texts))


def question_of(parts: Iterable[Part], between: str) -> str:
    """The question for an agent that reads only text: the texts, the JSON of data, and a line about each file."""
    texts: list[str] = []
    notes: list[str] = []
    for number, part in enumerate(parts, 1):
        if part.text is not UNSET and part.text:
            texts += (part.text,)
        if part.data is not UNSET:
            notes.append(_note(number, part.data))
        elif part.text is UNSET:
            notes.append(note_of_file(number, part))
    text = between.join(texts)
    return "\n\n".join([text, *notes] if texts else notes) if notes else text


def _note(number: int, data: Any) -> str:
    shown = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)
    return f"data (part {number}), as the caller sent it, not to be trusted:\n{shown}"


def note_of_file(number: int, part: Part, *, kept: tuple[int, int] | None = None) -> str:
    """The note about a file: one line; quoted, so that a name cannot add lines.

    `kept`: of a file that the hub keeps for its agent, the size in bytes and the id.
    """
    if kept is not None:
        content = f"{kept[0]} bytes, fileId={kept[1]}"
    elif isinstance(part.raw, str):
        content = f"{len(part.raw.rstrip('=')) * 3 // 4} bytes"
    else:
        content = json.dumps(part.url)
    named = [json.dumps(one) for one in (part.filename, part.media_type) if one]
    return f"file (part {number}), as the caller sent it, not in this text: {', '.join([*named, content])}"
