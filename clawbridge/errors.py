"""Why a call to a hub did not succeed."""


class HubError(Exception):
    """A call did not succeed, for the reason that its text says. `reason`: the hub's code for it, or empty."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class BadArguments(HubError, ValueError):
    """An argument cannot be right; nothing was sent."""


class Unreachable(HubError):
    """The hub does not answer, or something answers that is no Clawbridge hub."""


class Refused(HubError):
    """The hub refused. `status`: of HTTP; `retry_after_s`: how long to wait first, where the hub says so."""

    def __init__(self, text: str, reason: str, status: int, retry_after_s: int | None = None) -> None:
        super().__init__(text, reason)
        self.status = status
        self.retry_after_s = retry_after_s


class Unauthorized(Refused):
    """The token is missing, expired or revoked, or may not do this (status 401 or 403)."""


class TaskNotFound(Refused):
    """The hub keeps no such task of the caller's (any longer)."""


class Broken(Exception):
    """A stream broke or fell silent; what was sent may have reached the hub."""
