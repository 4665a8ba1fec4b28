"""What an attack did to honest callers and to the hub's memory, and the table of all attacks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from lab.bench.load import LoadRun

SLOWER, SPARE_MS = 2.0, 10.0  # slower than this, and by more than this, is starved
GROWN, SPARE_MIB = 1.2, 10.0
SHOWN_ENDS = 4
HEAD = (
    *("abuse", "requests", "p95 during", "p95 after", "memory during", "memory after"),
    *("how the attacker was answered", "starved"),
)


@dataclass(frozen=True)
class Phase:
    """What the honest callers noticed in one phase, and the hub's resident memory at its end."""

    asks: LoadRun
    reads: LoadRun
    rss_mib: float


@dataclass(frozen=True)
class AttackOutcome:
    """One attack. `ends`: how the hub answered the attacker; `rss_before_mib`: the hub's memory before it."""

    title: str
    rss_before_mib: float
    quiet: Phase
    during: Phase
    after: Phase
    ends: Mapping[str, int]

    @property
    def requests(self) -> int:
        """The number of requests, sockets and frames of the attacker that the hub answered or took."""
        return sum(self.ends.values())

    @property
    def grown(self) -> float:
        """The hub's memory after the attack, divided by that before."""
        return self.memory(self.after)

    @property
    def flaws(self) -> list[str]:
        """The wanted figures that the attack missed."""
        found = [*self._flaws_of("during", self.during), *self._flaws_of("after", self.after)]
        if not self.requests:
            found.append("the hub answered and took nothing: others were not attacked")
        if self.has_grown:
            found.append(f"memory: {self.rss_before_mib:.0f} MiB before, {self.after.rss_mib:.0f} MiB after")
        return found

    @property
    def has_grown(self) -> bool:
        """True if the hub has not given back the memory."""
        return self.grown > GROWN and self.after.rss_mib > self.rss_before_mib + SPARE_MIB

    def with_rss(self, rss_mib: float) -> Self:
        """The outcome with the hub's memory after a longer rest."""
        return replace(self, after=replace(self.after, rss_mib=rss_mib))

    def ratio(self, phase: Phase) -> float:
        """The p95 of asks or reads, whichever got slower, divided by that of the quiet phase."""
        return max(now.p95_ms / quiet.p95_ms for _, now, quiet in self._pairs(phase))

    def memory(self, phase: Phase) -> float:
        """The hub's memory at the end of a phase, divided by that before the attack."""
        return phase.rss_mib / self.rss_before_mib

    def _pairs(self, phase: Phase) -> Iterator[tuple[str, LoadRun, LoadRun]]:
        yield "asks", phase.asks, self.quiet.asks
        yield "reads", phase.reads, self.quiet.reads

    def _flaws_of(self, when: str, phase: Phase) -> Iterator[str]:
        for what, now, quiet in self._pairs(phase):
            if now.p95_ms > SLOWER * quiet.p95_ms and now.p95_ms > quiet.p95_ms + SPARE_MS:
                yield f"{when}: p95 of {what} {now.p95_ms:.0f} ms, quiet {quiet.p95_ms:.0f} ms"
            if now.errors:
                yield f"{when}: {now.errors} {what} failed: {now.first_error[:200]}"


def as_markdown(outcomes: Sequence[AttackOutcome]) -> str:
    """The table of the attacks; p95 and memory are multiples of those without the attack."""
    rows = [HEAD, ("---", *["---:"] * 5, "---", "---")]
    rows += [
        (
            one.title,
            f"{one.requests:,}",
            f"{one.ratio(one.during):.1f} ×",
            f"{one.ratio(one.after):.1f} ×",
            f"{one.memory(one.during):.2f} ×",
            f"{one.grown:.2f} ×",
            shown(one.ends),
            "yes" if one.flaws else "no",
        )
        for one in outcomes
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def others_share(outcomes: Sequence[AttackOutcome]) -> float:
    """The largest share of the processors that other programs used in a quiet phase."""
    return max((one.quiet.asks.used.others for one in outcomes), default=0.0)


def shown(ends: Mapping[str, int]) -> str:
    """The commonest answers, each with its number."""
    return ", ".join(f"{end} ({count:,})" for end, count in Counter(ends).most_common(SHOWN_ENDS))
