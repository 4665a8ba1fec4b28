"""One ask as its page, the REST call and the command show it; and the command line that sends it again."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from a2a_bridge import settings
from a2a_bridge.models import RecordedExchange
from a2a_bridge.service.ask_access import ViewedAsk, find_exchanges, find_viewed_ask
from a2a_bridge.service.ask_spans import Span, read_spans
from a2a_bridge.wire.recorded_text import HIDDEN
from agents import settings as agents_settings
from agents.core.explanations import explain
from agents.core.problems import AlreadyReported, report_problem
from agents.core.reasons import Explanation
from agents.models import ProblemNote
from agents.models.choices import Outcome
from kit.ids import unguessable

MAX_EXCHANGES = 20
SENT_AGAIN = (
    "content-type",
    "accept",
    "a2a-version",
    "a2a-extensions",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
)


class NotReportable(Exception):
    """The viewer is not the caller of the ask, or owns its agent; nothing was written."""


@dataclass(frozen=True, slots=True)
class AskView:
    """An ask with all that its viewer may see."""

    viewed: ViewedAsk
    exchanges: Sequence[RecordedExchange]
    spans: Sequence[Span]

    @property
    def explanation(self) -> Explanation:
        """The way in which the ask ended."""
        turn = self.viewed.turn
        return explain(turn.outcome, turn.reason, depth=turn.depth)

    @property
    def why(self) -> str:
        """The reason why the ask was refused, or not answered, for this viewer; else empty."""
        if self.viewed.turn.outcome not in (Outcome.FAILED, Outcome.DENIED):
            return ""
        return self.explanation.owner if self.viewed.is_owner else self.explanation.caller

    @property
    def problem(self) -> ProblemNote | None:
        """The caller's note about a problem, if there is one."""
        return getattr(self.viewed.turn, "problem", None) if self.viewed.turn.pk else None

    @property
    def may_report(self) -> bool:
        """True if the viewer may write such a note now."""
        turn = self.viewed.turn
        is_stored = bool(turn.pk and turn.agent and not turn.depth)
        return self.viewed.is_caller and not self.viewed.is_owner and is_stored and self.problem is None

    def report_problem(self, text: str) -> ProblemNote:
        """Keep the viewer's note; see `agents.core.problems.report_problem`.

        Raises:
            NotReportable: the viewer may not write one.
            AlreadyReported: the ask has one.
        """
        turn = self.viewed.turn
        if self.problem is not None:
            raise AlreadyReported
        if not self.may_report or turn.agent is None or turn.caller is None:
            raise NotReportable
        return report_problem(turn, turn.agent, turn.caller, text)

    @property
    def trace_url(self) -> str:
        """The address of the ask's trace; empty where the hub's operator has set none."""
        trace_id = self.viewed.turn.trace_id
        return agents_settings.TRACE_UI_URL.replace("{trace_id}", trace_id) if trace_id else ""

    @property
    def curl(self) -> str:
        """A command line that sends the ask again; empty for an ask that no agent was asked."""
        if not self.viewed.turn.agent_id or self.viewed.turn.depth:
            return ""
        return write_curl(self)


def find_ask(ask_id: str, user_id: int) -> AskView | None:
    """An ask that the user may read, by its chat id or the id of its task; None if there is none."""
    viewed = find_viewed_ask(ask_id, user_id)
    if viewed is None:
        return None
    exchanges = [] if viewed.is_queued else find_exchanges(viewed, MAX_EXCHANGES)
    return AskView(viewed, exchanges, read_spans(viewed, exchanges))


def write_curl(ask: AskView) -> str:
    """The command line: the first request as it was sent, or the question in the hub's dialect, if the request
    was not recorded whole. The token is `$TOKEN`.
    """
    first = next(iter(ask.exchanges), None)
    if first is not None and _is_whole(first):
        headers = msgspec.json.decode(first.request_headers, type=dict[str, str])
        sent = {name: headers[name] for name in SENT_AGAIN if name in headers}
        return _curl(first.path, sent, first.request_body)
    turn = ask.viewed.turn
    address = f"/api/a2a/v1/agents/{turn.asked}"
    message = {"messageId": unguessable("msg-"), "role": "ROLE_USER", "parts": [{"text": turn.question}]}
    call = {"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {"message": message}}
    return _curl(address, {"content-type": "application/json"}, msgspec.json.encode(call).decode())


def _is_whole(exchange: RecordedExchange) -> bool:
    body = exchange.request_body
    return len(body.encode()) == exchange.request_bytes and HIDDEN not in body and "…" not in body


def _curl(path: str, headers: dict[str, str], body: str) -> str:
    lines = [f"curl {shlex.quote(settings.PUBLIC_URL + path)}", '-H "Authorization: Bearer $TOKEN"']
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items()]
    return " \\\n  ".join([*lines, f"--data-raw {shlex.quote(body)}"])
