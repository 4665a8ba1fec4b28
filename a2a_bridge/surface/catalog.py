"""The published, public agents as machine-readable catalogs.

Two drafts describe the same list: AI Catalog 1.0 (`/.well-known/ai-catalog.json`) and Agentic Resource Discovery
0.91 (`/.well-known/ard.json`), which adds questions an agent is good for. A catalog names `PAGE` agents at most;
when there are more it names catalogs of up to `PAGE` agents each, which both drafts call nested.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, NotRequired, TypedDict
from urllib.parse import urlencode, urlsplit

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from agents.models import Agent
from kit.clock import iso
from kit.describe import Time, Url

PAGE = 500
MOST_CATALOGS = 1000
MOST_QUERIES = 5
AGENT_CARD: Final = "application/a2a-agent-card+json"
CATALOG: Final = "application/ai-catalog+json"


class Entry(TypedDict):
    """An agent by the address of its card, or a further catalog. `representativeQueries` is of ard.json alone."""

    identifier: str
    displayName: str
    type: Literal["application/a2a-agent-card+json", "application/ai-catalog+json"]
    url: Url
    description: NotRequired[str]
    tags: NotRequired[list[str]]
    updatedAt: NotRequired[Time]
    representativeQueries: NotRequired[list[str]]


class Host(TypedDict):
    """The operator of this hub."""

    displayName: str
    identifier: str
    documentationUrl: Url


class Catalog(TypedDict):
    """An AI Catalog."""

    specVersion: Literal["1.0"]
    host: Host
    entries: list[Entry]


@dataclass(frozen=True, slots=True)
class CatalogPart:
    """The handles of a nested catalog, in lower case: from `first` on, and before `end` if that is said."""

    first: str
    end: str


def catalog(public_url: str, path: str, part: CatalogPart | None, *, with_queries: bool) -> Catalog:
    """A catalog as JSON: the whole one, or a part. `path` is its own address, which those it nests share."""
    agents = Agent.objects.askable_by(None).order_by("handle_key")
    host = urlsplit(public_url).hostname or "localhost"
    if part is not None:
        agents = agents.filter(handle_key__gte=part.first)
        agents = agents.filter(handle_key__lt=part.end) if part.end else agents
        entries = [_agent(agent, public_url, host, with_queries) for agent in agents[: 2 * PAGE]]
    else:
        starts = _starts()
        entries = (
            [_agent(agent, public_url, host, with_queries) for agent in agents[:PAGE]]
            if len(starts) < 2
            else list(_nested(starts, public_url + path, host))
        )
    documentation = f"{public_url}/llms.txt"
    named: Host = {"displayName": f"Clawbridge at {host}", "identifier": host, "documentationUrl": documentation}
    return {"specVersion": "1.0", "host": named, "entries": entries}


def _starts() -> list[str]:
    """The handle each page begins with."""
    numbered = Agent.objects.askable_by(None).annotate(
        number=Window(RowNumber(), order_by=F("handle_key").asc()), place=(F("number") - 1) % PAGE
    )
    return list(
        numbered.filter(place=0).order_by("handle_key").values_list("handle_key", flat=True)[:MOST_CATALOGS]
    )


def _nested(starts: list[str], url: str, host: str) -> Iterable[Entry]:
    for first, end in zip(starts, [*starts[1:], ""], strict=True):
        query = {"from": first, "to": end} if end else {"from": first}
        yield {
            "identifier": f"urn:air:{_segment(host)}:catalog:{_segment(first)}",
            "displayName": f"Agents from @{first} on",
            "type": CATALOG,
            "url": f"{url}?{urlencode(query)}",
        }


def _agent(agent: Agent, public_url: str, host: str, with_queries: bool) -> Entry:
    owner, _, slug = agent.handle.partition("/")
    entry: Entry = {
        "identifier": f"urn:air:{_segment(host)}:agent:{_segment(owner)}:{_segment(slug)}",
        "displayName": agent.name,
        "type": AGENT_CARD,
        "url": f"{public_url}/api/a2a/v1/agents/{agent.handle}/.well-known/agent-card.json",
        "tags": ["chat"],
        "updatedAt": iso(agent.revised_at),
    }
    if told := agent.tagline or agent.description:
        entry["description"] = told
    if with_queries and agent.suggested_prompts:
        entry["representativeQueries"] = agent.suggested_prompts[:MOST_QUERIES]
    return entry


def _segment(text: str) -> str:
    """A text as a segment of a `urn:air` name, which takes letters, digits, dots, hyphens and underscores."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "-" for char in text)
