"""Template tags of pages: `{% load page %}`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from kit.markdown import to_html
from kit.money import format_usd

register = template.Library()


@register.simple_tag(takes_context=True)
def nav_link(context: Mapping[str, Any], name: str, text: str) -> SafeString | str:
    """A list item that leads to the page of this URL name, marked when one is there; nothing without one."""
    try:
        address = reverse(name)
    except NoReverseMatch:
        return ""
    here = getattr(context.get("request"), "path", "")
    is_here = here == address or here.startswith(f"{address.rstrip('/')}/")
    mark = format_html(' aria-current="{}"', "page" if here == address else "true") if is_here else ""
    return format_html('<li><a href="{}"{}>{}</a></li>', address, mark, text)


@register.filter
def markdown(text: str) -> SafeString:
    """A text of an owner or agent as safe HTML (`kit.markdown`)."""
    return to_html(text)


@register.filter
def ago(moment: datetime) -> str:
    """How long a moment is past, in words: `just now`, or `3 hours ago`."""
    return in_words(timesince(moment, depth=1))


def in_words(since: str) -> str:
    """What `timesince` found, as one says it."""
    return "just now" if since.startswith("0") else f"{since} ago"


@register.filter
def usd(microusd: int) -> str:
    """An amount in dollars, such as `$0.0042`."""
    return format_usd(microusd)
