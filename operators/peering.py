"""Whom `/peers` reaches: one session or agent by name, or many sessions at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from agents.core.targets import AmbiguousPeer, NoSuchTarget, find_agent, get_peer, peers_of
from agents.core.types import Target
from agents.models import Session
from agents.transcript.access import NotAllowed, Role
from operators.prompting import check_files

MOST_PROBED = 50


@dataclass(frozen=True, slots=True)
class Reached:
    """Whom a name stands for, by the public id of its session; and the files the prompt mentions."""

    target: Target
    session_id: str
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Probed:
    """A peer of a probe: whom to tell, or why not."""

    name: str
    target: Target | None = None
    session_id: str | None = None
    status: str = ""


def reach(name: str, prompt: str, user_id: int) -> Reached:
    """The session of that name, else the published agent.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer, FilesRefused: nothing is asked.
    """
    files = check_files(prompt, user_id)
    try:
        peer = get_peer(name, user_id)
    except (NoSuchTarget, NotAllowed):
        agent = find_agent(name.removeprefix("@"), user_id)
        if agent is None:
            raise
        return Reached(agent, str(Session.objects.get(pk=agent.session_id).public_id), files)
    return Reached(peer.target, str(peer.session.public_id), files)


def survey(names: Sequence[str] | None, user_id: int) -> list[Probed]:
    """Those whom a probe tells: the named, or whoever is online; each session once."""
    found: Iterable[Probed] = (_name(one, user_id) for one in names) if names is not None else _online(user_id)
    once: dict[str, Probed] = {}
    for one in found:
        once.setdefault(one.session_id or one.name, one)
    return list(islice(once.values(), MOST_PROBED))


def _online(user_id: int) -> list[Probed]:
    peers = [one for one in peers_of(user_id, at_least=Role.PROMPTER) if one.is_online]
    return [Probed(f"@{one.name}", one.target, str(one.session.public_id)) for one in peers]


def _name(name: str, user_id: int) -> Probed:
    try:
        peer = get_peer(name, user_id)
    except NoSuchTarget:
        return Probed(name, status="not_found")
    except NotAllowed:
        return Probed(name, status="forbidden")
    except AmbiguousPeer:
        return Probed(name, status="ambiguous")
    return Probed(name, peer.target, str(peer.session.public_id))
