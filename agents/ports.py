"""What the core needs of its surroundings, as contracts; hub/wiring.py names who keeps them."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from agents.types import OpenTurn


class Link(Protocol):
    """One way to reach agents."""

    async def deliver(self, turn: OpenTurn) -> None:
        """Hand the prompt over; the reply comes by the turn's inbox.

        Raises:
            NotDelivered: it provably never left.
            NoReceipt: nobody can tell whether it left.
        """


class Limits(Protocol):
    """How fast one caller may ask, over all processes. Opens when its memory is out of reach."""

    async def retry_in_s(self, caller_id: int) -> int:
        """Count one ask; 0 when it is within the rate, else seconds until the next would be."""

    async def close(self) -> None:
        """Let go of what it holds open."""


Clock = Callable[[], float]
Release = Callable[[str], Coroutine[Any, Any, None]]
