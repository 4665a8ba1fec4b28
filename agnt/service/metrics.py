"""Counters of this process for `/metrics`: envelopes, charges, openings of breakers. Counting adds to numbers."""

from collections import Counter
from typing import Final

from agnt.models import ApiKey
from clawbridge.agnt.fields import INTENTS

TIERS: Final = frozenset(ApiKey.Tier.values)
OTHER_INTENT = "other"
NO_TIER = "none"
OK = "ok"
DUPLICATE = "duplicate"


class AgntCounts:
    """`requests`: answered envelopes by intent, tier and status. `metered_events`: charges that were committed.

    The event loop counts envelopes and charges; one thread at a time counts openings of breakers.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.metered_events = 0
        self.breakers_opened = 0
        self.venue_breakers_opened = 0

    def note_envelope(self, intent: str, tier: str, status: str) -> None:
        """An envelope was answered. `status`: OK, DUPLICATE for a stored answer, or the code of the error.

        An unknown intent counts as `other`, an unknown tier as `none`: callers cannot make up labels.
        """
        known_intent = intent if intent in INTENTS else OTHER_INTENT
        self.requests[known_intent, tier if tier in TIERS else NO_TIER, status] += 1
