"""W3C Trace Context: reads the caller's trace, and makes a span for each step of a request.

https://www.w3.org/TR/trace-context/, version 00. The hub propagates traces, and exports the spans of sampled
traces where OpenTelemetry is configured.
"""

import random
import re
from collections.abc import Sequence
from contextvars import ContextVar

HEADER = "traceparent"
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_KNOWN_FLAGS = 0x03  # sampled, random trace id
NO_TRACE, NO_SPAN = "0" * 32, "0" * 16

SAMPLED = 0x01

# The span of the request that is being served; log lines name its trace.
current_span: ContextVar[str] = ContextVar("traceparent", default="")
# The chat id of the turn that an asyncio task, and the tasks that it starts, work on; log lines name it.
current_turn: ContextVar[str] = ContextVar("turn", default="")
_step: ContextVar[tuple[str, str]] = ContextVar("step", default=("", ""))  # the last span made, and its parent
_sampled_share: float | None = None  # None if no spans are exported


def read(values: Sequence[str]) -> str:
    """The valid `traceparent` among a request's headers of that name, in the form of version 00; empty without
    one.

    Section 3.2.2 of the standard: a later version is read by its first four fields.
    """
    found = _FORM.fullmatch(values[0].strip(" \t")) if len(values) == 1 else None
    if found is None:
        return ""
    version, trace, span, flags, more = found.groups()
    if version == "ff" or trace == NO_TRACE or span == NO_SPAN or (version == "00" and more is not None):
        return ""
    return f"00-{trace}-{span}-{flags if version == '00' else f'{int(flags, 16) & _KNOWN_FLAGS:02x}'}"


def follow(parent: str) -> str:
    """Make a span, in the parent's trace and with its flags; without a parent in a new trace."""
    if parent:
        made = f"{parent[:36]}{random.getrandbits(64):016x}{parent[52:]}"
    else:
        ids = f"{random.getrandbits(192):048x}"  # these distinguish steps, and need not be secret
        made = f"00-{ids[:32]}-{ids[32:]}-00"
    if _sampled_share is not None:
        if not parent and random.random() < _sampled_share:  # noqa: S311  chooses, guards nothing
            made = f"{made[:53]}01"
        _step.set((made, parent))
    return made


def parent_of(span: str) -> str:
    """The parent of the current step's last span; empty for any other span.

    The parent is only known where spans are exported.
    """
    made, parent = _step.get()
    return parent if made == span else ""


def sample_new(share: float) -> None:
    """Set the share (0 to 1) of new traces that are sampled; called where spans are exported."""
    global _sampled_share
    _sampled_share = share


def is_sampled(traceparent: str) -> bool:
    """True if the trace of this `traceparent` is recorded."""
    return bool(traceparent) and bool(int(traceparent[53:55], 16) & SAMPLED)


def trace_id(traceparent: str) -> str:
    """The trace id in a `traceparent`; empty for an empty one."""
    return traceparent[3:35]
