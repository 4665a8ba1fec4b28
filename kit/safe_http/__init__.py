"""HTTP requests to URLs that users gave: address checked and pinned, bounded in time and bytes."""

from kit.safe_http.client import Answer, SafeHttp
from kit.safe_http.streaming import Incoming, StreamingHttp, TooMuch, Unanswered
from kit.safe_http.target import NotPublic, NotSent, Rules, join_url, parse_url

__all__ = [
    "Answer",
    "Incoming",
    "NotPublic",
    "NotSent",
    "Rules",
    "SafeHttp",
    "StreamingHttp",
    "TooMuch",
    "Unanswered",
    "join_url",
    "parse_url",
]
