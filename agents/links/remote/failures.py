"""Why a remote server gave no answer. The texts are public: they name no address but what its owner gave."""

from agents.models.choices import Failure

MAX_WORDS = 500


class RemoteFailure(Exception):
    """A call that brought no answer. `counts`: the breaker takes it as a sign that the server is not well."""

    reason = Failure.AGENT_FAILED
    counts = True

    def __init__(self, words: str) -> None:
        super().__init__(words[:MAX_WORDS])


class Unreachable(RemoteFailure):
    """Nothing was sent."""

    reason = Failure.NOT_DELIVERED


class BreakerOpen(Unreachable):
    """It failed too often: it is left alone for a while."""

    counts = False


class CardRefused(Unreachable):
    """Its card keeps the hub from asking: the breaker opens at once, and each trial looks at the card again."""

    counts = False


class ServerMoved(Unreachable):
    """While its card was fetched, its owner moved or deleted it: the card says nothing of the new place."""

    counts = False


class NotSigned(Unreachable):
    """The hub cannot sign what the server has to be sent."""

    counts = False


class Lost(RemoteFailure):
    """The question left, but the connection broke before the answer was whole."""

    reason = Failure.CHANNEL_LOST


class Malformed(RemoteFailure):
    """What came is not A2A."""


class Ailing(RemoteFailure):
    """An HTTP status that says the server is not well: 429 or 5xx."""


class Declined(RemoteFailure):
    """The server is well and says no: another HTTP status, or an error of JSON-RPC."""

    counts = False

    def __init__(self, words: str, code: int = 0) -> None:
        super().__init__(words)
        self.code = code
