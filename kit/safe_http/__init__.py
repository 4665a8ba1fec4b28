"""HTTP requests to URLs that users gave: address checked and pinned, bounded in time and bytes."""

from kit.safe_http.client import ReceivedAnswer, SafeHttp, Unanswered
from kit.safe_http.streaming import Incoming, StreamingHttp, TooMuch
from kit.safe_http.target import NotPublic, NotSent, TargetRules, join_url, parse_url

__all__ = [
    "Incoming",
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
