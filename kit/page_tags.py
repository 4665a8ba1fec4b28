"""Template tags of pages: `{% load page %}`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from kit.clock import in_words, iso
from kit.markdown import to_html, to_line
from kit.money import format_usd

register = template.Library()

# The forms of a time on a page. `static/js/times.js` has the same ones, and shows them in the visitor's time zone.
FORMS = {"second": "j M Y, H:i:s", "minute": "j M Y, H:i", "day": "j M Y", "clock": "H:i:s"}


@register.simple_tag(takes_context=True)
def nav_link(context: Mapping[str, Any], name: str, text: str) -> SafeString | str:
    """A list item with a link to the page of this URL name, marked on that page itself; empty without a name."""
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
def preview(text: str, max_chars: int) -> str:
    """The beginning of a Markdown text as plain text in one line."""
    return to_line(text, max_chars)


@register.simple_tag
def moment(when: datetime, form: str = "second") -> SafeString:
    """A `<time>` in one of the FORMS, or `ago`; UTC until the page's script shows it in the visitor's zone.

    The title of the element is the time in UTC.
    """
    when = when.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC"{}>{}</time>',
        iso(when),
        date_format(when, FORMS["second"]),
        "" if form == "ago" else format_html(' data-form="{}"', form),
        ago(when) if form == "ago" else date_format(when, FORMS[form]),
    )


@register.filter("duration")
def describe_duration(ms: int | None) -> str:
    """A duration in readable units: `42 ms`, `1.2 s`, `15 min 13 s`, `2 h 5 min`; a dash for None."""
    if ms is None:
        return "–"
    if ms < 1000:
        return f"{ms} ms"
    if ms < 9950:
        return f"{ms / 1000:.1f} s".replace(".0 s", " s")
    left = round(ms / 1000)
    names: list[str] = []
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count or names:
            names.append(f"{count} {name}" if count else "")
    return " ".join(filter(None, names[:2]))


@register.filter
def ago(moment: datetime) -> str:
    """The time since a moment in words: `just now`, or `3 hours ago`."""
    return in_words(timesince(moment, depth=1))


@register.filter
def usd(microusd: int) -> str:
    """An amount in dollars, such as `$0.0042`."""
    return format_usd(microusd)
