"""What the sign-in's addresses share."""

from typing import Any

from django.http import HttpResponseRedirect
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.rest import JSONNegotiation


class Indifferent(JSONNegotiation):
    """Does not look at Accept: a browser that wants a page is sent on to one."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """JSON."""
        return renderers[0], renderers[0].media_type


class Open(APIView):
    """For callers who are on their way to a credential: whatever they bring along is not looked at."""

    content_negotiation_class = Indifferent
    authentication_classes = []
    permission_classes = []


def field(request: Request, name: str) -> str:
    """A text of the body; nothing when it is absent.

    Raises:
        ParseError: the body is no object, or the field no text that can be stored.
    """
    body: Any = request.data
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(value or "", str):
        raise ParseError(f"want an object with the text {name}")
    text = value or ""
    if "\0" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise ParseError(f"{name}: text may hold neither NUL nor a lone surrogate")
    return text


def sent_to(address: str) -> HttpResponseRedirect:
    """On to another address, this once."""
    response = HttpResponseRedirect(address)
    response["Cache-Control"] = "no-store"
    return response
