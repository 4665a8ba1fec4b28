"""`/questions/{chat id}`: the page of one ask, for its caller, and for the owner and auditors of its agent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.gzip import gzip_page

from a2a_bridge.models import RecordedExchange, Thread
from a2a_bridge.service.ask_access import ViewedAsk
from a2a_bridge.service.ask_spans import Span
from a2a_bridge.service.asks import AskView, NotReportable, find_ask
from accounts.models import User
from accounts.pages import user_form
from accounts.quotas import QuotaExceeded
from agents.core.problems import MAX_NOTE_CHARS, AlreadyReported, EmptyNote
from agents.core.ratings import word_of
from agents.models import Rating
from agents.models.choices import Outcome
from agents.transcript.replies import StoredReply, find_replies
from kit.clock import db_now

SPANS_ON_A_PAGE = 200
SHOWN_CHARS = 8_000  # of the question, and of each body
CHART_WIDTH = 1000
MIN_WIDTH = 4
AFTERWARDS = ("follow_up", "push", "webhook")
MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class ShownSpan:
    """A line of the waterfall. `x`, `width`: of its bar, in thousandths of the whole."""

    span: Span
    after_ms: int
    x: int
    width: int

    @property
    def tone(self) -> str:
        """The class of the bar."""
        return "bad" if self.span.is_fault else self.span.kind


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """A recorded exchange with its bodies indented, as far as they are shown."""

    row: RecordedExchange
    request: str
    response: str
    is_request_shown: bool
    is_request_cut: bool
    is_response_cut: bool

    @property
    def request_headers(self) -> str:
        """The kept headers, a line for each."""
        return _as_lines(self.row.request_headers)

    @property
    def response_headers(self) -> str:
        """The kept headers, a line for each."""
        return _as_lines(self.row.response_headers)


@gzip_page
@user_form
def ask_page(request: HttpRequest, user: User, ask_id: str) -> HttpResponse:
    """The page. A POST reports a problem to the agent's owner, and redirects to the page."""
    ask = find_ask(ask_id, user.pk)
    if ask is None:
        raise Http404
    address = reverse("question", args=[ask.viewed.turn.chat_id])
    if request.method == "POST":
        if (error := _report(request, ask)) is None:
            return HttpResponseRedirect(address)
        return render(request, "ask.html", _context(request, ask) | error, status=400)
    if ask_id != ask.viewed.turn.chat_id:  # the id of a task
        return HttpResponseRedirect(address)
    return render(request, "ask.html", _context(request, ask))


def _report(request: HttpRequest, ask: AskView) -> dict[str, str] | None:
    """Report the problem of the form; returns what the form shows where the note was not kept."""
    text = request.POST.get("note", "")
    try:
        ask.report_problem(text)
    except NotReportable:
        raise Http404 from None
    except EmptyNote:
        return {"error": "Write what was wrong.", "typed": text}
    except QuotaExceeded as full:
        return {"error": f"{str(full).capitalize()}.", "typed": text}
    except AlreadyReported:
        messages.error(request, "This ask has a report already, so nothing was written.")
    else:
        messages.success(request, "Reported. The agent’s owner sees your note beside this ask.")
    return None


def _context(request: HttpRequest, ask: AskView) -> dict[str, object]:
    viewed = ask.viewed
    rating: Rating | None = getattr(viewed.turn, "rating", None) if viewed.turn.pk else None
    page = Paginator(show_spans(ask.spans), SPANS_ON_A_PAGE).get_page(request.GET.get("page"))
    return {
        "ask": ask,
        "turn": viewed.turn,
        "viewed": viewed,
        "spans": page,
        "exchanges": [_show_exchange(one, viewed) for one in ask.exchanges],
        "reply": _find_reply(viewed),
        "colour": "good"
        if viewed.turn.outcome == Outcome.COMPLETED
        else "bad"
        if ask.explanation.is_fault
        else "",
        "state": "waiting in line" if viewed.is_queued else ask.explanation.label,
        "may_rate": viewed.is_caller and viewed.turn.outcome == Outcome.COMPLETED and not viewed.turn.depth,
        "rating": word_of(rating),
        "rating_note": rating.note if rating else "",
        "agent_page": _agent_page(viewed),
        "thread": _find_thread(viewed),
        "max_note_chars": MAX_NOTE_CHARS,
        "shown_chars": SHOWN_CHARS,
        "error": "",
        "typed": "",
    }


def _find_thread(viewed: ViewedAsk) -> Thread | None:
    """The caller's thread of which the ask is a part, once its task was read into it."""
    if not viewed.is_caller or not viewed.turn.task_id:
        return None
    return Thread.objects.filter(caller=viewed.user_id, tasks__task=viewed.turn.task_id).first()


def _agent_page(viewed: ViewedAsk) -> str:
    handle = viewed.turn.agent.handle if viewed.turn.agent and viewed.is_askable else ""
    return reverse("agent-page", args=handle.split("/", 1)) if handle else ""


def _find_reply(viewed: ViewedAsk) -> StoredReply | None:
    if viewed.is_queued or not viewed.may_read_response:
        return None
    return find_replies([viewed.turn]).get(viewed.turn.pk)


def show_spans(spans: Sequence[Span]) -> list[ShownSpan]:
    """The lines of a waterfall: each bar begins and ends where its step does within the whole.

    The whole is the ask, without what is sent or comes afterwards: that may take hours.
    """
    if not spans:
        return []
    now = db_now()
    own = [one for one in spans if one.kind not in AFTERWARDS] or spans
    begin = min(one.began_at for one in own)
    whole = max(max(one.ended_at or now, one.began_at) for one in own) - begin
    return [_show_span(one, begin, max(whole, MILLISECOND), now) for one in spans]


def _show_span(span: Span, begin: datetime, whole: timedelta, now: datetime) -> ShownSpan:
    after = max(span.began_at - begin, timedelta(0))
    end = min(max(span.ended_at or now, span.began_at) - begin, whole) * CHART_WIDTH // whole
    x = min(after * CHART_WIDTH // whole, CHART_WIDTH - MIN_WIDTH)
    return ShownSpan(span, after // MILLISECOND, x, max(end - x, MIN_WIDTH))


def _show_exchange(row: RecordedExchange, viewed: ViewedAsk) -> ShownExchange:
    request = _indent(row.request_body)
    response = _indent(row.response_body) if viewed.may_read_response else ""
    return ShownExchange(
        row,
        request[:SHOWN_CHARS],
        response[:SHOWN_CHARS],
        is_request_shown=viewed.may_read_request(row),
        is_request_cut=len(row.request_body) < row.request_bytes // 4 or len(request) > SHOWN_CHARS,
        is_response_cut=len(response) > SHOWN_CHARS,
    )


def _indent(body: str) -> str:
    """JSON indented; another body as it is."""
    try:
        return msgspec.json.format(body, indent=2)
    except (msgspec.DecodeError, ValueError):
        return body


def _as_lines(headers: str) -> str:
    return "\n".join(f"{name}: {value}" for name, value in msgspec.json.decode(headers).items())
