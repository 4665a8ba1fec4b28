"""How long to wait before each try to reach the hub again."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

STEPS_S = (1.0, 2.0, 5.0, 15.0, 30.0)
LAST_STEP_S = 60.0
JITTER = 0.2


def delays_s(random: Callable[[], float]) -> Iterator[float]:
    """Yield the waits 1, 2, 5, 15, 30, 60, 60, … seconds, each up to a fifth longer.

    Args:
        random: a number from 0 up to 1, asked once per wait, so that agents do not all come back at once.
    """
    for step_s in chain(STEPS_S, repeat(LAST_STEP_S)):
        yield step_s * (1 + JITTER * random())
