"""Kinds of callers, and the rule of an address that names them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

WEBHOOK, FURTHER = "webhook", "further rows"  # what some sets of rows have besides
EVERYTHING = f"{WEBHOOK}, {FURTHER}"


class May(StrEnum):
    """The least that a caller must be.

    A caller who may not even see the object gets the answer for an absent one.
    """

    ANY_CALLER = "every caller, signed in or not"
    SIGNED_IN = "any live session or app token; about one's own things only"
    BY_SESSION = "a live session token: no app's"
    STAFF = "the staff; a 403 for other users"
    VIEWER = "viewer of the session"
    PROMPTER = "prompter of the session"
    APPROVER = "approver of the session"
    OWNER = "owner of the session; a 403 for those it is shared with"
    MINE = "the owner; absent for all others"
    AGENT = "the session's own channel token; absent for other channel tokens, a 401 for operators"
    AGENT_OR_OWNER = "the owner, or the session's own channel token"
    SEES_AGENT = "users to whom the agent's access shows it, and its owner"
    SEES_CARD = "of a public agent every caller; of another one users who may ask it"
    ASKS_AGENT = "users whom the agent's access lets ask it and who are not blocked"
    BROWSER = "a browser that is signed in; others are sent to /signin"
    OWN_PAGE = "the owner's browser, or one with the role; for others as if it were not there"
    BY_HAND = "what a test of its own shows"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The callers that may, and a request that would succeed for them. `{names}` stand for what `rows.py` made.

    `asks`: it is refused to whom the owner blocks. `by_session`: no app token will do. `writes`: it changes what
    it names, so each caller gets a set of rows of their own. `names` that mean something else in it.
    """

    may: May
    body: Any = None
    query: str = ""
    form: bool = False
    ok: tuple[int, ...] = (200,)
    asks: bool = False
    writes: bool = False
    by_session: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    test: str = ""
    least_rank: int = 4
