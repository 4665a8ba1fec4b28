"""The one error of a call."""


class CallFailed(Exception):
    """An ask has no answer; the text says why, and may hold words of the other side.

    `code`: an `ErrorCode`, or another word that the other side used. `retryable`: the same ask, sent again
    unchanged, may succeed. `retry_after_s`: not before that time; 0: none is known. `was_sent`: the other side may
    have read the ask, so only one with the same `timestamp` is the same event. `is_failure`: breakers count it.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float = 0.0,
        was_sent: bool = True,
        is_failure: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.was_sent = was_sent
        self.is_failure = is_failure
