"""A collector of OpenTelemetry's, as an exporter sees it: OTLP over HTTP, and every span kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lab.receivers import Handler, serving_http


@dataclass(frozen=True)
class Span:
    """One span with its ids in hex; no parent is the empty string."""

    name: str
    trace: str
    span: str
    parent: str
    began_ns: int
    ended_ns: int
    attributes: dict[str, str]
    is_error: bool


@dataclass(frozen=True)
class Collector:
    """A collector of spans at `url`. `bodies`: the requests as they came."""

    url: str
    bodies: list[bytes]

    @property
    def spans(self) -> list[Span]:
        return [span for body in list(self.bodies) for span in read(body)]


def read(body: bytes) -> Iterator[Span]:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for one in scope.spans:
                yield Span(
                    one.name,
                    one.trace_id.hex(),
                    one.span_id.hex(),
                    one.parent_span_id.hex(),
                    one.start_time_unix_nano,
                    one.end_time_unix_nano,
                    {each.key: each.value.string_value for each in one.attributes},
                    one.status.code == 2,
                )


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector while it lasts."""
    bodies: list[bytes] = []

    class OtlpHandler(Handler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.answer(200)

    with serving_http(OtlpHandler) as port:
        yield Collector(f"http://127.0.0.1:{port}", bodies)
