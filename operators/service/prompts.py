"""The prompts, routes and probes of operators, from REST and sockets: target, files and start of each.

It waits for no agent.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

from agents.core.ask_starter import (
    TURN_WAIT_S,
    AmbiguousPeer,
    Asker,
    AskStarter,
    NoSuchTarget,
    find_agent,
    get_peer,
    load_peers,
    split_mention,
)
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.core.types import Source, Target
from agents.core.waiting import RunningTurn
from agents.models import Session
from agents.models.choices import Surface
from agents.transcript.access import NotAllowed, Role, find_session, role_of
from agents.transcript.mentions import MAX_FILES, TooManyFiles, Unreadable, mentions, readable
from kit.async_db import db_call
from operators.wire.errors import Archived, EmptyPrompt, NoSuchAgent, NoSuchSession
from operators.wire.frames import MOST_PROBED, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """A prompt as an operator sent it. `source_id`: the session they are attached to, when another."""

    session_id: UUID
    text: str
    attachments: Sequence[int] = ()
    source_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A prompt with its target. `routed_to`: the handle of the agent the text itself named."""

    target: Target
    text: str
    files: tuple[int, ...]
    source: Source | None = None
    routed_to: str | None = None


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """Whom a name stands for, by the public id of its session; and the files the prompt mentions."""

    target: Target
    session_id: str
    files: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A peer of a probe: whom to tell, or why not."""

    name: str
    target: Target | None = None
    session_id: str | None = None
    status: str = ""


def prepare(wanted: PromptRequest, user_id: int) -> Prepared:
    """Find out whom a prompt is for; reads only.

    Raises:
        NoSuchSession, NotAllowed, Archived, EmptyPrompt, NoSuchAgent, AmbiguousPeer, FilesRefused.
    """
    session = get_session(wanted.session_id, user_id, Role.PROMPTER)
    if session.archived_at is not None:
        raise Archived
    text = with_attachments(wanted.text, wanted.attachments)
    if not text.strip():
        raise EmptyPrompt
    target = Target(None, session.pk, name_of(session))
    if wanted.source_id is not None and wanted.source_id != session.public_id:
        source = _find_source(wanted.source_id, user_id, session)
        return Prepared(target=target, text=text, files=check_files(text, user_id), source=source)
    if (mention := split_mention(text)) is not None:
        return _elsewhere(*mention, session, user_id)
    return Prepared(target=target, text=text, files=check_files(text, user_id))


def find_route_target(name: str, prompt: str, user_id: int) -> RouteTarget:
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
        return RouteTarget(agent, str(Session.objects.get(pk=agent.session_id).public_id), files)
    return RouteTarget(peer.target, str(peer.session.public_id), files)


def find_probe_targets(names: Sequence[str] | None, user_id: int) -> list[ProbeTarget]:
    """The targets of a probe: the named peers, or all that are online; each session once."""
    found: Iterable[ProbeTarget] = (
        (_name(one, user_id) for one in names) if names is not None else _online(user_id)
    )
    once: dict[str, ProbeTarget] = {}
    for one in found:
        once.setdefault(one.session_id or one.name, one)
    return list(islice(once.values(), MOST_PROBED))


def with_attachments(text: str, attachments: Sequence[int]) -> str:
    """The text, and a mention of each attachment that it does not mention itself."""
    missing = [one for one in dict.fromkeys(attachments) if one not in mentions(text)]
    return " ".join([*([text] if text else []), *(f"fileId={one}" for one in missing)])


def check_files(text: str, user_id: int) -> tuple[int, ...]:
    """The ids of the files a text mentions, all readable for its author.

    Raises:
        FilesRefused: there are too many, or one is not theirs to read_body.
    """
    wanted = mentions(text)
    if len(wanted) > MAX_FILES:
        raise TooManyFiles
    if missing := set(wanted) - readable(wanted, user_id).keys():
        raise Unreadable(missing)
    return tuple(wanted)


def name_of(session: Session) -> str:
    """`owner/slug`."""
    return f"{session.owner.login}/{session.routing_name}"


def get_session(public_id: UUID, user_id: int, at_least: Role) -> Session:
    """A session in which the user has that role.

    Raises:
        NoSuchSession: not visible to them.
        NotAllowed: visible, but their role does not reach.
    """
    session = find_session(public_id, user_id, at_least=at_least)
    if session is None:
        raise NoSuchSession
    return session


def _find_source(public_id: UUID, user_id: int, target: Session) -> Source:
    """The session the operator is attached to. A viewer of it may ask from there, and leaves no trace in it."""
    source = get_session(public_id, user_id, Role.VIEWER)
    mirrors = role_of(source) >= Role.PROMPTER
    return Source(source.pk, mirrors, peer_login=name_of(target), peer_session_id=str(target.public_id))


def _elsewhere(handle: str, text: str, session: Session, user_id: int) -> Prepared:
    """The agent or session that the text names; the session it was written to shows question and reply."""
    agent = find_agent(handle, user_id)
    target, peer_id = (agent, None) if agent is not None else _peer(handle, user_id)
    source = None
    if target.session_id != session.pk:
        source = Source(session.pk, mirrors=True, peer_login=target.handle, peer_session_id=peer_id)
    routed_to = agent.handle if agent is not None else None
    files = check_files(text, user_id)
    return Prepared(target=target, text=text, files=files, source=source, routed_to=routed_to)


def _peer(name: str, user_id: int) -> tuple[Target, str]:
    try:
        peer = get_peer(name, user_id)
    except NoSuchTarget:
        raise NoSuchAgent(name) from None
    return peer.target, str(peer.session.public_id)


def _online(user_id: int) -> list[ProbeTarget]:
    peers = [one for one in load_peers(user_id, at_least=Role.PROMPTER) if one.is_online]
    return [ProbeTarget(f"@{one.name}", one.target, str(one.session.public_id)) for one in peers]


def _name(name: str, user_id: int) -> ProbeTarget:
    try:
        peer = get_peer(name, user_id)
    except NoSuchTarget:
        return ProbeTarget(name, status="not_found")
    except NotAllowed:
        return ProbeTarget(name, status="forbidden")
    except AmbiguousPeer:
        return ProbeTarget(name, status="ambiguous")
    return ProbeTarget(name, peer.target, str(peer.session.public_id))


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A prompt that is on its way. `routed_to`: the handle of the agent its text named."""

    chat_id: str
    routed_to: str | None


@dataclass(frozen=True, slots=True)
class SentRoute:
    """An ask that is under way, and the public id of the session asked."""

    running: RunningTurn
    session_id: str

    @property
    def chat_id(self) -> str:
        """Its name."""
        return self.running.turn.ask.chat_id


class PromptService:
    """Starts asks for operators. `reply_wait_s`: how long the caller of a routed ask waits."""

    def __init__(self, *, asking: AskStarter, reply_wait_s: float) -> None:
        self._asking = asking
        self.reply_wait_s = reply_wait_s

    async def prompt(self, asker: Asker, wanted: PromptRequest, *, surface: Surface) -> SentPrompt:
        """Prompt a session, or whom the text names instead.

        Raises:
            One of `operators.wire.errors.REFUSED`: nothing was sent.
        """
        prepared = await db_call(prepare)(wanted, asker.user_id)
        running = await self._asking.ask(
            asker,
            prepared.target,
            prepared.text,
            surface=surface,
            tells=True,
            source=prepared.source,
            files=prepared.files,
        )
        return SentPrompt(running.turn.ask.chat_id, prepared.routed_to)

    async def route(self, asker: Asker, peer: str, prompt: str, mode: Mode) -> SentRoute:
        """Ask or tell one peer or agent by name.

        Raises:
            One of `operators.wire.errors.REFUSED`: nothing was sent.
        """
        reached = await db_call(find_route_target)(peer, prompt, asker.user_id)
        tells = mode == "tell"
        running = await self._asking.ask(
            asker,
            reached.target,
            prompt,
            surface=Surface.ROUTE,
            wait_s=TURN_WAIT_S if tells else self.reply_wait_s,
            tells=tells,
            files=reached.files,
        )
        return SentRoute(running, reached.session_id)

    async def probe(self, asker: Asker, prompt: str, peers: Sequence[str] | None) -> list[ProbeTarget]:
        """Tell many peers the same; each with what became of it.

        Raises:
            FilesRefused: nothing was sent.
        """
        files = await db_call(check_files)(prompt, asker.user_id)
        found = await db_call(find_probe_targets)(peers, asker.user_id)
        return await asyncio.gather(*(self._tell(asker, one, prompt, files) for one in found))

    async def _tell(self, asker: Asker, probed: ProbeTarget, prompt: str, files: tuple[int, ...]) -> ProbeTarget:
        if probed.target is None:
            return probed
        status = "sent"
        try:
            await self._asking.ask(asker, probed.target, prompt, surface=Surface.PROBE, tells=True, files=files)
        except Denied as denied:
            status = denied.reason
        except (NotPublished, FileGone):
            status = "not_found"
        except Unavailable:
            status = "unavailable"
        return replace(probed, status=status)
