"""Why an agent is no longer on its hub."""

from enum import Enum


class Ending(Enum):
    """How a connection, or a whole run, ended. Only `LOST` is worth another try."""

    LOST = "the connection was lost"
    STOPPED = "this side asked to stop"
    DISMISSED = "the hub closed the connection for good"
    SUPERSEDED = "another process took over this session"
    REFUSED = "the hub refused the token"
