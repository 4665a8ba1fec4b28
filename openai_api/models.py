"""The agents that a caller may ask, as the list of models."""

from typing import NamedTuple

from a2a_bridge.dialects.reading import invalid
from accounts.authn import Identity
from agents.models import Agent
from kit.asgi import HttpRequest
from openai_api.messages import MAX_MODEL_CHARS, MODEL_PREFIX
from openai_api.shapes import Model, ModelPage

MAX_LISTED = 1_000


class ModelQuery(NamedTuple):
    """Which models are wanted: so many, behind the one of that id."""

    limit: int
    after: str


def read_query(request: HttpRequest) -> ModelQuery:
    """The checked query of a request.

    Raises:
        RpcError: -32602, a value has the wrong form.
    """
    limit = next(iter(request.query_values("limit")), str(MAX_LISTED))
    after = next(iter(request.query_values("after")), "")
    if not (limit.isascii() and limit.isdecimal() and len(limit) <= 4 and 1 <= int(limit) <= MAX_LISTED):
        raise invalid("limit", f"limit: want a number from 1 to {MAX_LISTED}")
    is_id = after.startswith(MODEL_PREFIX) and after.isprintable() and len(after) <= MAX_MODEL_CHARS
    if after and not is_id:
        raise invalid("after", f"after: want the id of a model, such as {MODEL_PREFIX}OWNER/SLUG")
    return ModelQuery(int(limit), after.removeprefix(MODEL_PREFIX).lower())


def load_models(caller: Identity, limit: int, after: str) -> ModelPage:
    """A page of the agents that the caller may ask, by handle. Reads the database."""
    found = Agent.objects.askable_by(caller.user_id).order_by("handle_key")
    if caller.only_agent:
        found = found.filter(handle_key=caller.only_agent)
    agents = list(found.filter(handle_key__gt=after)[: limit + 1])
    models = [
        Model(
            id=f"{MODEL_PREFIX}{agent.handle}",
            created=int(agent.created_at.timestamp()),
            owned_by=agent.handle.partition("/")[0],
        )
        for agent in agents[:limit]
    ]
    return ModelPage(data=models, has_more=len(agents) > limit)
