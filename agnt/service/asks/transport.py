"""How the hub reaches venues over HTTP: by addresses that were checked and pinned, and with JSON read strictly."""

from collections.abc import Mapping
from typing import Any

from agnt.client.transport import HttpAnswer, NoAnswer
from kit import strict_json
from kit.safe_http import NotPublic, NotSent, StreamingHttp, TooMuch, Unanswered


class GuardedTransport:
    """A `Transport` under the rules of a `StreamingHttp`, whose owner closes it."""

    def __init__(self, http: StreamingHttp) -> None:
        self._http = http

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, max_bytes: int) -> HttpAnswer:
        """See `Transport`."""
        sent = {**headers, "Content-Length": str(len(body))}
        try:
            async with self._http.stream("POST", url, headers=sent, body=body) as incoming:
                return HttpAnswer(incoming.status, incoming.headers, await incoming.read(max_bytes))
        except NotSent as refused:
            raise NoAnswer(str(refused), was_sent=False, retryable=not isinstance(refused, NotPublic)) from None
        except TooMuch as much:
            raise NoAnswer(str(much), was_sent=True, retryable=False) from None
        except Unanswered as failure:
            raise NoAnswer(str(failure), was_sent=True) from None


def parse_strictly(body: bytes) -> Any:
    """The value of an answer's body, for `Client`.

    Raises:
        ValueError: it is not JSON that a sound program sends.
    """
    try:
        return strict_json.read(body)
    except strict_json.UnreadableText as unreadable:
        raise ValueError(str(unreadable)) from None
