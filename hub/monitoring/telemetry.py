"""Spans for OpenTelemetry, sent in batches by a thread of the SDK's. Imported only where an endpoint is set.

The ids are those that traceparents carry already (docs/reference/tracing.md): a turn's span is the one its agent
got as parent. Spans hold neither questions nor answers, nor the user who asked.
"""

import secrets
import threading
import time
from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.models.choices import Outcome
from kit import trace

SEND_WITHIN_S = 5
SCOPE = InstrumentationScope("clawbridge")


class TurnSpans:
    """See `agents.core.ports.Spans`. A turn whose trace is not sampled has none."""

    def __init__(self, version: str) -> None:
        self._resource = Resource.create({"service.name": "clawbridge", "service.version": version})
        self._processor = BatchSpanProcessor(OTLPSpanExporter(timeout=SEND_WITHIN_S))

    def admitted(self, ask: Ask, began_ns: int, reason: str = "") -> None:
        """See `Spans`."""
        if not trace.is_sampled(ask.traceparent):
            return
        self._step("admission", ask, began_ns, reason)
        if reason:
            self._whole(ask, began_ns, Outcome.DENIED, reason)

    def delivered(self, turn: OpenTurn, began_ns: int, failure: str = "") -> None:
        """See `Spans`."""
        if trace.is_sampled(turn.ask.traceparent):
            self._step("delivery", turn.ask, began_ns, failure)

    def settled(self, turn: OpenTurn, ending: TurnEnding, settled: SettledTurn, began_ns: int) -> None:
        """See `Spans`."""
        if not trace.is_sampled(turn.ask.traceparent):
            return
        self._step("settle", turn.ask, began_ns)
        asked_ns = began_ns - (ending.latency_ms or 0) * 1_000_000
        self._whole(turn.ask, asked_ns, settled.outcome, settled.reason)

    def close(self) -> None:
        """See `Spans`."""
        sending = threading.Thread(target=self._processor.shutdown, name="last spans", daemon=True)
        sending.start()
        sending.join(SEND_WITHIN_S)  # the SDK would wait half a minute for a collector that is away

    def _whole(self, ask: Ask, began_ns: int, outcome: str, reason: str) -> None:
        about = {"clawbridge.surface": ask.surface, "clawbridge.outcome": outcome, "clawbridge.reason": reason}
        failed = reason if outcome != Outcome.COMPLETED else ""
        self._end("ask", ask, ask.traceparent, trace.parent_of(ask.traceparent), began_ns, failed, about)

    def _step(self, name: str, ask: Ask, began_ns: int, failed: str = "") -> None:
        own = f"{ask.traceparent[:36]}{secrets.token_hex(8)}-01"
        self._end(name, ask, own, ask.traceparent, began_ns, failed, {})

    def _end(
        self, name: str, ask: Ask, own: str, parent: str, began_ns: int, failed: str, about: Mapping[str, str]
    ) -> None:
        span = ReadableSpan(
            name,
            context=_context(own),
            parent=_context(parent) if parent else None,
            resource=self._resource,
            attributes={"clawbridge.chat_id": ask.chat_id, **about},
            kind=SpanKind.SERVER if name == "ask" else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR, failed) if failed else Status(),
            start_time=began_ns,
            end_time=max(began_ns, time.time_ns()),
            instrumentation_scope=SCOPE,
        )
        self._processor.on_end(span)


def _context(traceparent: str) -> SpanContext:
    _, trace_id, span_id, flags = traceparent.split("-")
    sampled = TraceFlags(int(flags, 16))
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=sampled)
