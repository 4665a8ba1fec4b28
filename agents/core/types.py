"""The structs that surfaces, admission, dispatch and links exchange: frozen, without JSON."""

from msgspec import Struct

from accounts.authn import Identity
from agents.core.errors import Denied
from agents.models.choices import AGENTS_OWN_WORDS, CHANNEL_LINK, Outcome, Surface
from agents.transcript.pieces import Part, Usage
from kit import sql


class AskTarget(Struct, frozen=True):
    """The target of an ask: a published agent by its handle, or, without an agent, a session by its name.

    `wait_s`: how long a caller waits for a reply; None: REPLY_WAIT_S. `max_body_bytes`: the longest request over
    A2A; None: the hub's own limit. `task_store`: where the agent's tasks are kept (`Agent.TaskStore`); empty:
    where the hub keeps them. `text_type`: the media type of the agent's texts, if its card names another one
    before plain text. `has_follow_ups`: the agent has sent follow-ups that no ask has got yet.
    """

    agent_id: int | None
    session_id: int
    handle: str
    wait_s: int | None = None
    style: str = "hybrid"
    max_body_bytes: int | None = None
    task_store: str = ""
    text_type: str = ""
    has_follow_ups: bool = False


class AskSource(Struct, frozen=True):
    """The session an ask came from. `mirrors`: its transcript shows the question and its end.

    `reports`: its transcript shows only the answer; its agent asked, and does not wait. `peer_login`,
    `peer_session_id`: the peer that the transcript names.
    """

    session_id: int
    mirrors: bool = False
    reports: bool = False
    peer_login: str | None = None
    peer_session_id: str | None = None


class HookedSession(Struct, frozen=True):
    """A session as the hooks of its program see it; without a connection while its agent is offline."""

    session_id: int
    credential_id: int | None
    connection_id: int | None
    process_id: str | None


class LookUpResult(Struct, frozen=True):
    """The credential and the agent that a request names; None where none is valid.

    `session`: None unless the session last registered with the token of the request.
    """

    identity: Identity | None
    agent: AskTarget | None
    session: HookedSession | None = None


class Ask(Struct, frozen=True, kw_only=True):
    """One question to one agent or session, before admission. `wait_s`: how long its caller waits.

    `tells`: no caller waits for the reply; the end of the agent's turn ends the ask, too. `source`: the session
    that asked. `chain`: the sessions an onward ask came through, first to last. `files`: the ids that the text
    mentions. `task_id`, `context_id`, `message_id`: the surface's ids of the task, the conversation and the
    message (A2A's `messageId`, which the caller chooses). `parts`: the message's parts if they are more than text.
    `traceparent`: the ask's span in the caller's trace (`kit.trace`). `message_key`: the same for identical
    messages; an ask joins an open one with the same key. Empty: the ask joins none. `parent`: the chat id of the
    turn in which an agent asks; empty for a first ask. `queues`: the ask waits for a busy agent, if the agent's
    owner allows that. `continues_task`: the ask answers a question of the agent in its task, and overtakes waiting
    asks. `credential_id`: the token of a message over the gateway to a session of the token's own user; the rate
    limit counts the message by token instead of by caller. None for every other ask. `passed_by_stranger`: an
    agent whose owner is not the caller passed the ask on. `writes`: the writes of the surface in the transaction
    that admits the ask.
    """

    chat_id: str
    target: AskTarget
    caller_id: int
    caller_login: str
    surface: Surface
    question: str
    wait_s: float
    tells: bool = False
    source: "AskSource | None" = None
    chain: tuple[int, ...] = ()
    files: tuple[int, ...] = ()
    task_id: str = ""
    context_id: str = ""
    message_id: str = ""
    parts: tuple[Part, ...] = ()
    traceparent: str = ""
    message_key: str = ""
    parent: str = ""
    queues: bool = False
    continues_task: bool = False
    credential_id: int | None = None
    passed_by_stranger: bool = False
    writes: tuple[sql.Query, ...] = ()

    @property
    def depth(self) -> int:
        """The number of agents that passed the ask on; 0 for a first ask."""
        return len(self.chain)


class OpenTurn(Struct, frozen=True, kw_only=True):
    """An admitted ask: committed, counted, with its claim; `text` is to be delivered over `connection_id`.

    `isolated`: while it lasts, its agent may not reach other sessions. `is_own`: its agent's owner asks
    (`agents.core.trust`). `watchers`: the processes with operators of the session. `link`: the name of the
    link that delivers the turn. If the link needs no connection, `connection_id` is `NO_CONNECTION` and
    `link_process` is the process that waits.
    """

    ask: Ask
    connection_id: int
    link_process: str
    text: str
    isolated: bool = False
    is_own: bool = False
    session_public_id: str = ""
    watchers: tuple[str, ...] = ()
    link: str = CHANNEL_LINK


class TurnEnding(Struct, frozen=True, kw_only=True):
    """The end that dispatch wants to store; the ledger's row has the end that was stored.

    `waited_ms`, `delivered_ms`, `first_piece_ms`: the columns of `Turn`.
    """

    outcome: Outcome
    reason: str = ""
    text: str = ""
    latency_ms: int | None = None
    waited_ms: int | None = None
    delivered_ms: int | None = None
    first_piece_ms: int | None = None
    keeps_claim: bool = False
    returns_budget: bool = False
    usage: Usage | None = None


class SettledTurn(Struct, frozen=True):
    """The one end of a turn, as stored. `text` is the reply, or the agent's own reason why there is none.

    `has_extra_writes`: the extra writes of its surface are committed, if there were any. `refused`: why a queued
    ask was never sent; there is no turn then. `usage`: what the agent reported with its reply. `is_unsent`: the
    hub knows that nothing was sent to the agent, so asking again is safe.
    """

    outcome: Outcome
    reason: str
    text: str = ""
    has_extra_writes: bool = True
    refused: Denied | None = None
    usage: Usage | None = None
    is_unsent: bool = False

    @property
    def own_words(self) -> str:
        """The agent's own reason for not answering; empty when the reason is the hub's."""
        return self.text if self.reason in AGENTS_OWN_WORDS else ""
