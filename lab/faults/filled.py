"""Which rows must not be empty: a fault that tried nothing broke nothing."""

from collections.abc import Mapping, Sequence

DONE = "was done to its end, and callers asked to theirs"  # noted of every fault
MUCH = 300  # asks of a load; a twentieth of them are streams of A2A 1.0, a quarter is keyed

BY_FAULT: Mapping[str, Sequence[str]] = {
    "F1": ("a process died",),
    "F2": ("a delivery in the hands of a killed worker",),
    "F3": ("agents are back", "asks are answered again"),
    "F4": ("/readyz", "reads", "an agent of the same process", "an agent of another process", "signing in"),
    "F5": ("asks across processes", "an ask across processes"),
    "F6": ("asks are answered again",),
    "F7": ("asks are answered again",),
    "F8": ("no claim is left", "an ask to an agent"),
    "F9": ("of rival sockets",),
    "F10": ("while agents flap", "asks are answered"),
    "F11": ("the clocks were wrong", "no asks are counted", "turns are dated", "a revoked token"),
    "F12": ("no day's budget",),
    "F13": ("memory of a stream", "streams that are not read", "who reads gets each event", "read "),
    "F14": ("bad replies cost",),
    "F15": ("asks taken in", "a drained process"),
    "F17": ("a bad receiver holds no sender", "every bad receiver was tried", "others' deliveries"),
    "F18": ("an ask of a database that only reads", "an ask while the disk is full", "reads go on"),
    "F19": ("asks are answered while no beat runs", "the next beat"),
    "F20": ("500 agents", "connections to PostgreSQL", "an ask of 500"),
    "I12": ("of one caller's asks",),
    "I13": ("the next request", "an open stream", "the socket"),
    "I16": ("the API answers",),
}
"""How the rows begin that a fault must fill, by its name. Of others: any figure of their own."""
