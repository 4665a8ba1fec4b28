"""HTTP sessions to identity providers: no proxy, no .netrc, no redirects; answers have a deadline and a size."""

import threading
import time
from queue import Empty, SimpleQueue
from typing import Any

import requests
from authlib.integrations.requests_client import OAuth2Session
from requests.adapters import HTTPAdapter

from kit.durations import seconds

PROVIDER_WITHIN_S = seconds(10.0, at_least_s=4.0)
CONNECT_WITHIN_S = 5.0
MAX_ANSWER_BYTES = 262_144


def open_session(client_id: str, client_secret: str, callback: str, **options: Any) -> OAuth2Session:
    """A session of an OAuth client. Whatever it asks must be answered within PROVIDER_WITHIN_S, all together."""
    session = OAuth2Session(
        client_id=client_id,
        client_secret=client_secret,
        code_challenge_method="S256",
        redirect_uri=callback,
        **options,
    )
    session.trust_env = False  # neither a proxy nor a .netrc gets to see the secret
    session.max_redirects = 0
    session.headers["User-Agent"] = "clawbridge"
    bounded = _Bounded(time.monotonic() + PROVIDER_WITHIN_S)
    session.mount("https://", bounded)
    session.mount("http://", bounded)
    return session


class _Bounded(HTTPAdapter):
    """Answers that end: one deadline for all of them, and a size."""

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """See requests; the body is read here, piece by piece, so that a trickle ends in time too."""
        kwargs |= {"stream": True, "timeout": (min(CONNECT_WITHIN_S, self._left()), self._left())}
        response = self._answer_to(request, *args, **kwargs)
        body = b""
        while piece := response.raw.read1(65_536, decode_content=True):
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                response.close()
                raise requests.exceptions.ContentDecodingError("the answer is too long")
            self._left()
        response._content = body  # what requests itself sets after reading
        return response

    def _answer_to(self, *args: Any, **kwargs: Any) -> requests.Response:
        """The answer's head, in a thread that is left behind at the deadline: a timeout of a socket begins anew
        with every byte, so headers that trickle would hold us for ever."""
        answers: SimpleQueue[requests.Response | Exception] = SimpleQueue()
        send = super().send

        def ask() -> None:
            try:
                answers.put(send(*args, **kwargs))
            except Exception as failure:  # noqa: BLE001  raised again where it is waited for
                answers.put(failure)

        threading.Thread(target=ask, name="sign-in", daemon=True).start()
        try:
            answer = answers.get(timeout=self._left())
        except Empty:
            raise requests.exceptions.ReadTimeout("no answer before the deadline") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise requests.exceptions.ReadTimeout("the deadline is over")
        return left
