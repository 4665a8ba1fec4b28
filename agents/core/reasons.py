"""The classes of the registry of reasons. The entries are in `agents.core.errors` and `agents.core.failures`.

A surface has codes for the kinds of refusals, not for single reasons. A surface has a text of its own only where
its callers got that text before there was this registry.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum


class ClaimState(StrEnum):
    """The time until which the session's claim is held after an ask, in words for the owner."""

    FREED = "The agent can be asked at once."
    OFFLINE = "The agent can be asked when it is connected again."
    LINGERS = "The agent answers no other caller until it has finished, for at most 60 s."
    LINGERS_CONNECTED = "The agent answers no other caller until its connection ends, for at most 60 s."
    UNTIL_RECORDED = "The agent answers no other caller until the hub has recorded the end."

    @property
    def is_kept(self) -> bool:
        """True if the end of the turn leaves the claim in place."""
        return self not in (ClaimState.FREED, ClaimState.OFFLINE)


class Retry(StrEnum):
    """The time when the hub may admit the same ask, in words for developers."""

    SOON = "in a few seconds"
    WHEN_TOLD = "after the time that the text names"
    AT_MIDNIGHT = "after 00:00 UTC"
    NO = "no"


class RefusalKind(Enum):
    """The meaning of a refusal for programs. `status`: the usual HTTP status."""

    OFFLINE = "offline", 503, Retry.SOON
    BUSY = "busy", 429, Retry.SOON
    TOO_FAST = "too fast", 429, Retry.WHEN_TOLD
    SPENT = "spent", 429, Retry.AT_MIDNIGHT
    FORBIDDEN = "forbidden", 403, Retry.NO
    PASSED_ON = "passed on", 403, Retry.NO
    ENDED = "ended", 403, Retry.NO
    WITHDRAWN = "withdrawn", 503, Retry.SOON

    def __init__(self, _name: str, status: int, retry: Retry) -> None:
        self.status = status
        self.retry = retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One way an ask ends, or the state of an ask that has not ended.

    `label`: one or two words. `is_fault`: something went wrong, so pages show the end in red.
    `caller`: a sentence for the caller, as "you". `owner`: a sentence for the owner of the agent, staff and people
    with a share; by default that for the caller.
    `advice`: what the caller can do; clients of MCP and of OpenAI's API get it, too.
    `is_counted`: whether the ask stays in the day's budget; None: nothing was sent, or nothing has ended.
    """

    label: str
    caller: str
    owner: str = ""
    advice: str = ""
    is_fault: bool = False
    is_counted: bool | None = None
    claim: ClaimState | None = None

    def __post_init__(self) -> None:
        if not self.owner:
            object.__setattr__(self, "owner", self.caller)

    @property
    def counted(self) -> str:
        """A sentence for the caller: whether the ask counts in today's budget; empty if that does not apply."""
        return {True: "It counts in today’s budget.", False: "It does not count.", None: ""}[self.is_counted]

    @property
    def remains(self) -> str:
        """For the owner: whether the ask counts in the day's budget, and when the agent can be asked again."""
        if self.claim is None:
            return ""
        counted = "It counts in the day’s budget." if self.is_counted else "It was given back to the day’s budget."
        return f"{counted} {self.claim}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReason(Explanation):
    """A reason why an ask got no reply.

    `reason`: public and stored, never changes. `text`: public, for programs. `agent`: a clause for the model of an
    agent that asked another one; empty: `text`. The placeholder `{agent}` in both is the name that a surface has
    for the asked agent.
    """

    reason: str
    text: str
    agent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalReason(EndReason):
    """A reason for a refusal: nothing was sent to the agent. The placeholder `{denied}` in texts is the `Denied`.

    `caller_text`, `caller_agent`: replace `text` and `agent` where the reason lies with the caller.
    """

    kind: RefusalKind
    label: str = "refused"
    caller_text: str = ""
    caller_agent: str = ""

    @property
    def texts(self) -> list[str]:
        """The texts for programs: `text`, and `caller_text` if there is one."""
        return list(filter(None, (self.text, self.caller_text)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureReason(EndReason):
    """A reason for a failure: the agent may have got the ask, unless `is_counted` is False.

    `{wait_s}` in `text` is how long the caller waited. `when`: what happened, in the Markdown of
    docs/reference/errors.md.
    """

    claim: ClaimState
    when: str
    label: str = "failed"
    is_fault: bool = True
    is_counted: bool = True
