"""A card on a real port, for tests that wait in no event loop."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.remote.servers import Json, card_10


@contextmanager
def serving_card(card: Json | None = None) -> Iterator[str]:
    """The URL above the card's well-known place."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_there = self.path == "/.well-known/agent-card.json"
            body = json.dumps(shown).encode() if is_there else b"{}"
            self.send_response(200 if is_there else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    url = f"http://127.0.0.1:{server.server_address[1]}"
    shown = json.loads(json.dumps(card or card_10()).replace("{url}", url))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
