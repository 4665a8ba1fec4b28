"""The durations of the protocol, which one factor shortens for tests.

Each constant that a client, an agent, a job or another process waits for is written as `seconds(10.0)`: the length
that the contract states. Plain numbers are retention, lifetimes that the wire states, and the time-outs of calls
to PostgreSQL, Redis and DNS, which guard against a fault and end nothing in time.
"""

from kit import env

TIME_SCALE = env.fraction("TEST_TIME_SCALE", 1, least=0.01)
"""only for tests: a factor on the durations of the protocol (those fixed below, and values derived from them, such
as retry pauses and claims). Settings in seconds, retention and lifetimes that responses contain are not scaled,
and a few deadlines have a lower bound. `check --deploy` refuses another factor than 1 unless `PUBLIC_URL` is
loopback"""


def seconds(real_s: float, *, at_least_s: float = 0.0, scale: float = TIME_SCALE) -> float:
    """`real_s` times the scale; not below `at_least_s`, where a busy machine would break a shorter wait."""
    return min(real_s, max(real_s * scale, at_least_s))
