"""Template filters of the reference: `{% load reference %}`."""

from django import template
from django.utils.safestring import SafeString

from a2a_bridge.reference import lines

register = template.Library()


@register.filter
def cell(text: str) -> SafeString:
    """A cell of the docs' tables as HTML."""
    return lines.html(text)


@register.filter
def indent(text: str) -> str:
    """Text as a block of Markdown code, whose first line is indented already."""
    return text.replace("\n", "\n    ")
