"""The calls of tools that are being answered, and how their clients cancel them."""

from dataclasses import dataclass


@dataclass(slots=True)
class OpenCall:
    """A call of a tool while it is answered. `leaving_cancels`: a client that leaves cancels the call."""

    leaving_cancels: bool = False
