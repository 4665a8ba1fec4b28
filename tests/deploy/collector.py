"""A collector of OpenTelemetry's, as an exporter sees it: OTLP over HTTP, and every span kept."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


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


class Collector(ThreadingHTTPServer):
    """Listens on a port of its own. `bodies` are the requests as they came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def spans(self) -> list[Span]:
        return [span for body in list(self.bodies) for span in read(body)]


class Handler(BaseHTTPRequestHandler):
    """Takes whatever is posted."""

    server: Collector

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: standard error is the test's."""


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
    with Collector() as collector:
        thread = threading.Thread(target=collector.serve_forever, daemon=True)
        thread.start()
        yield collector
        collector.shutdown()
        thread.join()
