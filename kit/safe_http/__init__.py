"""HTTP requests to URLs that users gave: address checked and pinned, bounded in time and bytes."""

from kit.safe_http.client import IncomingAnswer, ReceivedAnswer, SafeHttp, StreamingHttp, TooMuch, Unanswered
from kit.safe_http.target import NotPublic, NotSent, TargetRules, join_url, parse_url

__all__ = [
    "IncomingAnswer",
    "NotPublic",
    "NotSent",
    "ReceivedAnswer",
    "SafeHttp",
    "StreamingHttp",
    "TargetRules",
    "TooMuch",
    "Unanswered",
    "join_url",
    "parse_url",
]
