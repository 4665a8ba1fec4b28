"""A plugin of pytest for the kit, which sends no credentials: each of its requests to the hub carries HUB_TOKEN.

Loaded into the kit's own Python, so it imports nothing of the hub.
"""

import os
from typing import Any

import httpx

HUB, TOKEN = os.environ["HUB_URL"], os.environ["HUB_TOKEN"]


class TokenTransport(httpx.HTTPTransport):
    """Adds the token to requests to the hub."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if str(request.url).startswith(HUB):
            request.headers.setdefault("Authorization", f"Bearer {TOKEN}")
        return super().handle_request(request)


def _with_token(begin: Any) -> Any:
    def beginning(client: httpx.Client, **options: Any) -> None:
        begin(client, **{"transport": TokenTransport(), **options})

    return beginning


httpx.Client.__init__ = _with_token(httpx.Client.__init__)  # type: ignore[method-assign]
