"""Template filters of the desk: `{% load desk %}`."""

from django import template

from agents.core.errors import in_words

register = template.Library()


@register.filter
def why(reason: str) -> str:
    """Why an ask ended as it did, in words."""
    return in_words(reason)
