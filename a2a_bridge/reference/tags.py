"""Template filters of the reference: `{% load reference %}`."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.safestring import SafeString

from a2a_bridge import pages
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


@register.simple_tag
def explanations() -> Mapping[str, Any]:
    """For scripts of pages that ask: what each error and refusal means, and what to do about it."""
    return pages.explanations()
