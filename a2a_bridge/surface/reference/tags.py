"""Template filters of the reference: `{% load reference %}`."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.safestring import SafeString

from a2a_bridge import settings
from a2a_bridge.surface.cards import url_of
from a2a_bridge.surface.reference import errors
from a2a_bridge.wire.versions import DIALECTS
from accounts.models import Group, Membership, User
from agents.models import Agent

register = template.Library()
CURL_ASK = """curl -s {url} \\
  -H "Authorization: Bearer $A2A_TOKEN" -H 'Content-Type: application/json' \\
  -d '{{"jsonrpc":"2.0","id":"1","method":"SendMessage","params":{{"message":{{\
"messageId":"m1","role":"ROLE_USER","parts":[{{"text":"hello"}}]}}}}}}'"""


@register.filter
def cell(text: str) -> SafeString:
    """A cell of the docs' tables as HTML."""
    return errors.html(text)


@register.filter
def indent(text: str) -> str:
    """Text as a block of Markdown code, whose first line is indented already."""
    return text.replace("\n", "\n    ")


@register.simple_tag
def sdk_address(agent: Agent) -> str:
    """An agent's address as official SDKs take it: they look for the card below it."""
    return f"{url_of(agent, settings.PUBLIC_URL)}/"


@register.simple_tag
def curl_ask(agent: Agent) -> str:
    """A shell command that asks an agent; the variable A2A_TOKEN holds a token of the caller."""
    return CURL_ASK.format(url=url_of(agent, settings.PUBLIC_URL))


@register.simple_tag
def dialects() -> str:
    """The dialects that every agent speaks, as a list in a sentence."""
    titles = [one.description.title for one in reversed(DIALECTS)]
    *others, last = [title if title.startswith("A2A") else "the hub’s own dialect" for title in titles]
    return f"{', '.join(others)} and {last}" if others else last


@register.simple_tag
def groups_of(user: User) -> list[Group]:
    """The groups with which a user may share answers, by name."""
    asking = Membership.objects.asking().filter(user=user.pk).values("group")
    return list(Group.objects.filter(pk__in=asking).select_related("account").order_by("name", "pk"))


@register.simple_tag
def explanations() -> Mapping[str, Any]:
    """The meaning of each error and refusal, and the advice, for scripts of pages that ask."""
    return errors.explanations()
