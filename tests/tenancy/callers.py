"""Every kind of caller, and what the rules let each of them do."""

from dataclasses import dataclass

from tests.tenancy.rights import May, Rule

RANK = {May.VIEWER: 1, May.PROMPTER: 2, May.APPROVER: 3, May.OWNER: 4, May.MINE: 4, May.AGENT_OR_OWNER: 4}
HIDING = {May.MINE}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """A caller. `token`: the name of the caller's token in the world; `rank` in the sessions of the owner of the
    main set of rows.

    `may_read`: the canaries they may meet. `scope`, `only_agent`: what a limited token is for.
    """

    token: str
    rank: int = 0
    kind: str = "session"
    is_blocked: bool = False
    is_staff: bool = False
    is_live: bool = True
    may_read: frozenset[str] = frozenset()
    scope: str = ""
    only_agent: str = ""


VIEWERS = frozenset({"canary-viewer"})
ALL = frozenset({"canary-viewer", "canary-approver", "canary-owner", "canary-guest"})
CALLERS = {
    "the owner": Caller(token="olga", rank=4, may_read=ALL),
    "an app of the owner's": Caller(token="olga app", rank=4, kind="app", may_read=ALL),
    "the session's agent": Caller(token="olga channel", kind="channel", may_read=ALL),
    "an approver": Caller(token="anna", rank=3, may_read=VIEWERS | {"canary-approver"}),
    "a prompter": Caller(token="pia", rank=2, may_read=VIEWERS),
    "a viewer": Caller(token="vera", rank=1, may_read=VIEWERS),
    "a prompter who is blocked": Caller(token="blake", rank=2, is_blocked=True, may_read=VIEWERS),
    "another tenant": Caller(token="stan"),
    "another tenant's agent": Caller(token="stan channel", kind="channel"),
    "a guest of the limited agent": Caller(token="gwen", may_read=frozenset({"canary-guest"})),
    "one of the staff": Caller(token="root", is_staff=True),
    "a revoked token": Caller(token="revoked", is_live=False),
    "an expired token": Caller(token="expired", is_live=False),
    "a suspended approver": Caller(token="sue", is_live=False),
    "anonymous": Caller(token="", is_live=False),
}
LIMITED = {  # app tokens of the login that begins their name: test_limited_tokens.py
    "a token that only reads": Caller(token="olga reads", rank=4, kind="app", may_read=ALL, scope="read"),
    "a token that only asks": Caller(token="olga asks", rank=4, kind="app", may_read=ALL, scope="ask"),
    "a token that only publishes": Caller(
        token="olga publishes", rank=4, kind="app", may_read=ALL, scope="publish"
    ),
    "a token that only administers": Caller(token="root administers", kind="app", is_staff=True, scope="admin"),
    "a token that would administer": Caller(token="olga administers", rank=4, kind="app", scope="admin"),
    "a token for one agent": Caller(token="olga one agent", rank=4, kind="app", only_agent="olga/pub-main"),
    "a token for a seat": Caller(
        token="olga seat", rank=4, kind="app", scope="connect", only_agent="olga/pub-main"
    ),
}
ONE_OF_EACH_KIND = (
    "the owner",
    "the session's agent",
    "a prompter",
    "another tenant",
    "a guest of the limited agent",
    "one of the staff",
    "a revoked token",
    "anonymous",
)
ABSENT = "absent"


def verdict(rule: Rule, caller: Caller) -> int | str | None:
    """The status a refusal has, `ABSENT` when the answer is that of an absent object, None when the caller may."""
    if rule.may in (May.ANY_CALLER, May.SEES_CARD):
        return None
    if rule.may is May.BROWSER:
        return None if caller.is_live and caller.kind == "session" else 302
    if caller.kind == "channel":
        return _of_agent(rule, caller)
    if not caller.is_live or rule.may is May.AGENT:
        return 401
    if caller.kind == "app" and (rule.by_session or rule.may is May.BY_SESSION):
        return 403
    if rule.may in RANK:
        return _by_rank(rule, caller)
    if rule.may is May.STAFF:
        return None if caller.is_staff else 403
    return 403 if rule.may is May.ASKS_AGENT and caller.is_blocked else None


def _of_agent(rule: Rule, caller: Caller) -> int | str | None:
    if rule.may in (May.AGENT, May.AGENT_OR_OWNER):
        return None if caller.token.startswith("olga") else ABSENT
    return 401


def _by_rank(rule: Rule, caller: Caller) -> int | str | None:
    if caller.rank == 0:
        return ABSENT
    if caller.rank < RANK[rule.may]:
        return ABSENT if rule.may in HIDING else 403
    return 403 if rule.asks and caller.is_blocked else None


def those_who_may(rule: Rule) -> list[str]:
    """The callers, by name, for whom a rule's request succeeds."""
    return [name for name, caller in CALLERS.items() if verdict(rule, caller) is None]
