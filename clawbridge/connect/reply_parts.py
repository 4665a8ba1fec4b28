"""The parts of an answer besides text; for a hub that does not take them, a part becomes text where it can."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

MAX_TOKENS = 10**12
MAX_COST_USD = 10_000

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Status:
    """The progress of an answer, in words of up to 16 KiB; the answer goes on."""

    text: str
    metadata: Json | None = None


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A result beside the text. `parts` are A2A's: each has one of text, raw (base64), url, data.

    `artifact_id`: 1 to 64 of A-Z a-z 0-9 . _ - and no other of this answer's, unless it is to be replaced.
    `append`: the parts go to the artifact of that id; `last_chunk`: nothing more does.
    """

    artifact_id: str
    parts: Sequence[Json]
    name: str = ""
    description: str = ""
    metadata: Json | None = None
    append: bool = False
    last_chunk: bool = False


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The usage of this answer, at most $10,000; of several in an answer the last one counts. None: not known.

    Raises:
        ValueError: a number that the hub would refuse.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def __post_init__(self) -> None:
        for name, value, kinds, most in (
            ("input_tokens", self.input_tokens, (int,), MAX_TOKENS),
            ("output_tokens", self.output_tokens, (int,), MAX_TOKENS),
            ("cost_usd", self.cost_usd, (int, float), MAX_COST_USD),
        ):
            if value is not None and (type(value) not in kinds or not 0 <= value <= most):
                raise ValueError(f"{name}: want a number from 0 to {most}")


@dataclass(frozen=True)
class Decision:
    """The decision on a permission request. `message`: the approver's words for the program, often none."""

    is_allowed: bool
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ProgramPermissionRequest:
    """The program requests permission to use a tool, from the operators of its session; the answer goes on.

    `on_decision` is called at most once, and not after the end of the answer.
    """

    tool: str
    input_preview: str
    on_decision: Callable[[Decision], None]


@dataclass(frozen=True)
class ReplyEnd:
    """The end of an answer that is not its completion; later parts are ignored. `text` is for the caller."""

    state: ClassVar[str]
    text: str


class InputRequired(ReplyEnd):
    """The agent asks the caller for input: the caller's reply is another question with the same `task_id`."""

    state = "input_required"


class AuthRequired(ReplyEnd):
    """The agent needs authorization or credentials, which the agent gets in a way of its own."""

    state = "auth_required"


class Failed(ReplyEnd):
    """The agent failed."""

    state = "failed"


class Rejected(ReplyEnd):
    """The agent declines the question."""

    state = "rejected"


ReplyPart = str | Status | Artifact | Usage | ProgramPermissionRequest | ReplyEnd


def clean(text: str) -> str:
    """Replace what neither UTF-8 nor a database takes: lone surrogates and NUL."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def cleaned(value: Any) -> Any:
    """A JSON value with each of its strings cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(name)): cleaned(inner) for name, inner in value.items()}
    return [cleaned(inner) for inner in value] if isinstance(value, list | tuple) else value


def cut(text: str, at_most_bytes: int) -> str:
    """The beginning of a text that fits into so many bytes of UTF-8."""
    return text.encode()[:at_most_bytes].decode(errors="ignore")


def text_of(fields: Json, name: str) -> str:
    """The member of that name, empty if it is no text."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def object_of(fields: Json, name: str) -> Json:
    """The member of that name, empty if it is no object."""
    value = fields.get(name)
    return value if isinstance(value, Mapping) else {}
