"""The developer reference: try an agent from the browser, and read what can be sent. Also as text for programs."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge.dialects.dialect import Dialect
from a2a_bridge.reference import errors, lines, samples
from a2a_bridge.reference.contents import key_of
from a2a_bridge.reference.contents import reference as read_reference
from a2a_bridge.settings import get_settings
from a2a_bridge.versions import DIALECTS
from accounts.oauth.pages import signed_in
from accounts.oauth.signin_methods import find_signin_methods
from agents.core.directory import AgentActivity, load_agent_activity
from agents.models import Agent

LISTED = 200


@never_cache
@gzip_page
@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    """`/demos/a2a/`: with `?agent=owner/slug` that agent is picked, if the visitor may ask it."""
    agents = choices(request.user.pk, request.GET.get("agent", "").removeprefix("@"))
    context = {
        **contents(),
        "agents": agents,
        "caller": signed_in(request),
        "start": {
            "hub": get_settings().public_url,
            "agents": agents,
            "explanations": explanations(),
            "dialects": [_speech(one) for one in DIALECTS],
        },
    }
    return render(request, "reference/page.html", context)


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """`/llms.txt`: the reference as Markdown, for programs that read."""
    return render(request, "reference/llms.txt", contents(), content_type="text/plain; charset=utf-8")


def contents() -> dict[str, Any]:
    """What page and text have in common."""
    settings = get_settings()
    return {
        "reference": read_reference(settings.public_url),
        "hub": settings.public_url,
        "sockets": settings.public_url.replace("http", "ws", 1),
        "cards": samples.cards(settings.public_url),
        "wait_s": settings.reply_wait_s,
        "dev_login": settings.dev_login,
        "can_sign_in": find_signin_methods().is_any,
    }


def choices(user_id: int | None, wanted: str) -> list[dict[str, Any]]:
    """The agents to pick from, in the words of an ApiAgent; the wanted one first, then by handle."""
    askable = Agent.objects.askable_by(user_id)
    listed = list(askable.order_by("handle_key")[:LISTED])
    if wanted.isprintable() and (first := askable.at(wanted).first()):
        listed = [first, *(agent for agent in listed if agent.pk != first.pk)]
    facts = load_agent_activity(listed)
    return [_choice(agent, facts[agent.pk]) for agent in listed]


def _speech(one: Dialect) -> dict[str, Any]:
    """How the page's script speaks a dialect: `methods` by what they do, `message` to fill in."""
    return {
        "key": key_of(one),
        "title": one.description.title,
        "version": one.description.header,
        "methods": {operation: name for name, operation in one.methods.items()},
        "message": one.description.message,
    }


def _choice(agent: Agent, facts: AgentActivity) -> dict[str, Any]:
    return {
        "handle": agent.handle,
        "name": agent.name,
        "tagline": agent.tagline,
        "description": agent.description,
        "suggestedPrompts": agent.suggested_prompts,
        "isolated": agent.isolated,
        "online": facts.is_online,
        "queriesToday": facts.queries_today,
        "dailyBudgetQueries": agent.daily_budget,
    }


def explanations() -> Mapping[str, Any]:
    """For the page's script: errors by their code, and refusals and failures by the text of their task."""
    codes = [
        {
            "code": one.code,
            "http": one.http,
            "name": one.name,
            "when": lines.plain(one.when),
            "again": lines.plain(one.again),
        }
        for one in errors.codes()
    ]
    ends = [
        {
            "pattern": one.pattern,
            "reason": one.reason,
            "label": one.explanation.label,
            "caller": one.explanation.caller,
            "advice": one.explanation.advice,
            "counted": one.explanation.counted,
            "isFault": one.explanation.is_fault,
            "hasNumber": one.has_number,
            "wasSent": one.explanation.is_counted is not None,
        }
        for one in (*errors.refusals(), *errors.failures())
    ]
    return {"codes": codes, "ends": ends}
