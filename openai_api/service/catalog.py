"""The agents that a caller may ask, as models."""

from a2a_bridge.surface.asgi import find_handle
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.errors import agent_not_found
from accounts.authn import Identity
from agents.models import Agent
from agents.models.agent import AgentQuerySet
from kit.asgi import HttpRequest
from openai_api.wire.messages import MAX_MODEL_CHARS, MODEL_PREFIX
from openai_api.wire.shapes import Model, ModelPage

MAX_LISTED = 1_000


def read_query(request: HttpRequest) -> tuple[int, str]:
    """The number of models that a request wants, and the key of the agent behind which they begin.

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
    return int(limit), after.removeprefix(MODEL_PREFIX).lower()


def get_handle(model: str) -> str:
    """The handle of the agent that a model's id names.

    Raises:
        RpcError: no agent has such an id.
    """
    handle = find_handle(model.removeprefix(MODEL_PREFIX)) if len(model) <= MAX_MODEL_CHARS else None
    if handle is None or not model.startswith(MODEL_PREFIX):
        raise agent_not_found()
    return handle


def find_team_name(model: str) -> str:
    """The name of a team's agent in a model's id; empty if the id names no agent, or an agent with its owner."""
    name = model.removeprefix(MODEL_PREFIX)
    return name if model.startswith(MODEL_PREFIX) and "/" not in name else ""


def load_models(caller: Identity, limit: int, after: str) -> ModelPage:
    """A page of the agents that the caller may ask, by handle. Reads the database."""
    agents = list(_askable_by(caller).filter(handle_key__gt=after).order_by("handle_key")[: limit + 1])
    return ModelPage(data=[_model(agent) for agent in agents[:limit]], has_more=len(agents) > limit)


def load_model(caller: Identity, model: str) -> Model:
    """The model of that id. The function reads the database.

    Raises:
        RpcError: there is none of that id for this caller.
    """
    agent = _askable_by(caller).at(get_handle(model)).first()
    if agent is None:
        raise agent_not_found()
    return _model(agent)


def _askable_by(caller: Identity) -> AgentQuerySet:
    found = Agent.objects.askable_by(caller.user_id)
    return found.at(caller.only_agent) if caller.only_agent else found


def _model(agent: Agent) -> Model:
    return Model(
        id=f"{MODEL_PREFIX}{agent.handle}",
        created=int(agent.created_at.timestamp()),
        owned_by=agent.handle.partition("/")[0],
    )
