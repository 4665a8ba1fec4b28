"""The durations of the protocol, which one factor shortens for tests.

Each constant that a client, an agent, a job or another process waits for is written as `seconds(10.0)`: the
length that the contract states. Not written so: retention, lifetimes that the wire tells, and the time-outs of
calls to PostgreSQL, Redis and DNS, which guard against a fault and end nothing in time.
"""

import os

from django.core.exceptions import ImproperlyConfigured

LEAST_SCALE = 0.01


def read_scale(raw: str) -> float:
    """The factor from its text; empty means 1.

    Raises:
        ImproperlyConfigured: the text is no number from LEAST_SCALE to 1.
    """
    try:
        scale = float(raw or 1)
    except ValueError:
        scale = 0.0
    if not LEAST_SCALE <= scale <= 1:
        raise ImproperlyConfigured(f"TEST_TIME_SCALE={raw!r}: want a number from {LEAST_SCALE} to 1")
    return scale


TIME_SCALE = read_scale(os.environ.get("TEST_TIME_SCALE", ""))


def seconds(real_s: float, *, at_least_s: float = 0.0, scale: float = TIME_SCALE) -> float:
    """`real_s` times the scale; not below `at_least_s`, where a busy machine would break a shorter wait."""
    return min(real_s, max(real_s * scale, at_least_s))
