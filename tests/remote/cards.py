"""A card on a real port, for tests that wait in no event loop."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from lab.receivers import Handler, serving_http
from tests.remote.servers import Json, card_10


@contextmanager
def serving_card(card: Json | None = None) -> Iterator[str]:
    """The URL above the card's well-known place."""

    class CardHandler(Handler):
        def do_GET(self) -> None:
            is_there = self.path == "/.well-known/agent-card.json"
            body = json.dumps(card or card_10()).replace("{url}", url) if is_there else "{}"
            self.answer(200 if is_there else 404, body.encode(), Content_Type="application/json")

    with serving_http(CardHandler) as port:
        url = f"http://127.0.0.1:{port}"
        yield url
