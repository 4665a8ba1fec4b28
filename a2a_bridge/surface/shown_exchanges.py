"""Questions with their answers as the template `threads/exchange.html` shows them."""

from collections.abc import Mapping
from dataclasses import dataclass

from a2a_bridge.service.threads.exchanges import Exchange
from a2a_bridge.wire.task import State

_LABELS: Mapping[str, tuple[str, str]] = {  # with the class of the badge
    State.SUBMITTED: ("in progress", ""),
    State.WORKING: ("in progress", ""),
    State.INPUT_REQUIRED: ("asks you back", "good"),
    State.AUTH_REQUIRED: ("asks for permission", "good"),
    State.COMPLETED: ("answered", "good"),
    State.FAILED: ("not answered", "bad"),
    State.CANCELED: ("canceled", ""),
    State.REJECTED: ("declined", ""),
}


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """An exchange for the template. `label`, `colour`: the text and the class of the badge with its state."""

    exchange: Exchange

    @property
    def label(self) -> str:
        """The state in a word or two."""
        return _LABELS[self.exchange.state][0]

    @property
    def colour(self) -> str:
        """The class of the badge."""
        return _LABELS[self.exchange.state][1]
