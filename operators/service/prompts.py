"""The prompts, routes and probes of operators, from REST and sockets: target, files and start of each.

The module waits for no agent.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

from agents.core.ask_starter import (
    TURN_WAIT_S,
    AmbiguousPeer,
    AskingUser,
    AskStarter,
    NoSuchTarget,
    find_agent,
    get_peer,
    load_peers,
    split_mention,
    target_of,
)
from agents.core.errors import Denied, FileGone, NotPublished, Unavailable
from agents.core.types import AskSource, AskTarget
from agents.core.waiting import RunningTurn
from agents.models import Session
from agents.models.choices import Surface
from agents.transcript.access import NotAllowed, SessionRole, find_session, role_of
from agents.transcript.mentions import MAX_FILES, FilesUnreadable, TooManyFiles, mentions, readable
from kit.async_db import db_call
from operators.wire.errors import Archived, EmptyPrompt, NoSuchRecipient, NoSuchSession
from operators.wire.frames import MAX_PROBED, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """A prompt as an operator sent it. `source_id`: the session to which the operator is attached, if it is
    another session.
    """

    session_id: UUID
    text: str
    attachments: Sequence[int] = ()
    source_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedPrompt:
    """A prompt with its target. `routed_to`: the handle of the agent that the text itself named."""

    target: AskTarget
    text: str
    files: tuple[int, ...]
    source: AskSource | None = None
    routed_to: str | None = None


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """A peer of a probe: its target, or the reason why the peer is not asked."""

    name: str
    target: AskTarget | None = None
    session_id: str | None = None
    status: str = ""


def address_prompt(wanted: PromptRequest, user_id: int) -> AddressedPrompt:
    """Find the target of a prompt; the function writes nothing.

    Raises:
        NoSuchSession, NotAllowed, Archived, EmptyPrompt, NoSuchRecipient, AmbiguousPeer, FilesRefused.
    """
    session = get_session(wanted.session_id, user_id, SessionRole.PROMPTER)
    if session.archived_at is not None:
        raise Archived
    text = with_attachments(wanted.text, wanted.attachments)
    if not text.strip():
        raise EmptyPrompt
    target, source = target_of(session), None
    if wanted.source_id is not None and wanted.source_id != session.public_id:
        # A viewer of the source session may ask from there, but question and reply are not shown in it.
        asking = get_session(wanted.source_id, user_id, SessionRole.VIEWER)
        mirrors, peer_id = role_of(asking) >= SessionRole.PROMPTER, str(session.public_id)
        source = AskSource(asking.pk, mirrors, peer_login=target.handle, peer_session_id=peer_id)
    elif (mention := split_mention(text)) is not None:
        return _address_mentioned(*mention, session, user_id)
    return AddressedPrompt(target=target, text=text, files=check_files(text, user_id), source=source)


def find_route_target(name: str, prompt: str, user_id: int) -> tuple[AskTarget, str, tuple[int, ...]]:
    """Find the session of that name, else the published agent; returns the target, the session's public id, and
    the files of the prompt.

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
        return agent, str(Session.objects.get(pk=agent.session_id).public_id), files
    return peer.target, str(peer.session.public_id), files


def find_probe_targets(names: Sequence[str] | None, user_id: int) -> list[ProbeTarget]:
    """The targets of a probe: the named peers, or all peers that are online; each session once."""
    if names is not None:
        found: Iterable[ProbeTarget] = (_find_probe_target(one, user_id) for one in names)
    else:
        peers = load_peers(user_id, at_least=SessionRole.PROMPTER)
        found = (
            ProbeTarget(f"@{one.name}", one.target, str(one.session.public_id)) for one in peers if one.is_online
        )
    once: dict[str, ProbeTarget] = {}
    for one in found:
        once.setdefault(one.session_id or one.name, one)
    return list(islice(once.values(), MAX_PROBED))


def with_attachments(text: str, attachments: Sequence[int]) -> str:
    """The text, with a mention of each attachment that it does not mention yet."""
    missing = [one for one in dict.fromkeys(attachments) if one not in mentions(text)]
    return " ".join([*([text] if text else []), *(f"fileId={one}" for one in missing)])


def check_files(text: str, user_id: int) -> tuple[int, ...]:
    """The ids of the files that a text mentions; all are readable for its author.

    Raises:
        FilesRefused: there are too many, or the author may not read one of them.
    """
    wanted = mentions(text)
    if len(wanted) > MAX_FILES:
        raise TooManyFiles
    if missing := set(wanted) - readable(wanted, user_id).keys():
        raise FilesUnreadable(missing)
    return tuple(wanted)


def get_session(public_id: UUID, user_id: int, at_least: SessionRole) -> Session:
    """A session in which the user has at least that role.

    Raises:
        NoSuchSession: the session is absent or hidden from the user.
        NotAllowed: the user's role is too low.
    """
    session = find_session(public_id, user_id, at_least=at_least)
    if session is None:
        raise NoSuchSession
    return session


def _address_mentioned(handle: str, text: str, session: Session, user_id: int) -> AddressedPrompt:
    """A prompt to the agent or peer that its text names; the session in which it was written shows question and
    reply.
    """
    agent = find_agent(handle, user_id)
    if agent is not None:
        target, peer_id = agent, None
    else:
        try:
            peer = get_peer(handle, user_id)
        except NoSuchTarget:
            raise NoSuchRecipient(handle) from None
        target, peer_id = peer.target, str(peer.session.public_id)
    source = None
    if target.session_id != session.pk:
        source = AskSource(session.pk, mirrors=True, peer_login=target.handle, peer_session_id=peer_id)
    routed_to = agent.handle if agent is not None else None
    files = check_files(text, user_id)
    return AddressedPrompt(target=target, text=text, files=files, source=source, routed_to=routed_to)


def _find_probe_target(name: str, user_id: int) -> ProbeTarget:
    try:
        peer = get_peer(name, user_id)
    except NoSuchTarget:
        return ProbeTarget(name, status="not_found")
    except NotAllowed:
        return ProbeTarget(name, status="forbidden")
    except AmbiguousPeer:
        return ProbeTarget(name, status="ambiguous")
    return ProbeTarget(name, peer.target, str(peer.session.public_id))


class PromptService:
    """Starts asks for operators. `reply_wait_s`: how long the caller of a routed ask waits."""

    def __init__(self, *, asking: AskStarter, reply_wait_s: float) -> None:
        self._asking = asking
        self.reply_wait_s = reply_wait_s

    async def prompt(
        self, asker: AskingUser, wanted: PromptRequest, *, surface: Surface
    ) -> tuple[RunningTurn, str | None]:
        """Prompt a session, or the target that the text names; returns the turn, and the handle of the agent that
        it named.

        Raises:
            An error of `operators.wire.errors.REFUSED`: the hub sent nothing.
        """
        prompt = await db_call(address_prompt)(wanted, asker.user_id)
        running = await self._asking.ask(
            asker,
            prompt.target,
            prompt.text,
            surface=surface,
            tells=True,
            source=prompt.source,
            files=prompt.files,
        )
        return running, prompt.routed_to

    async def route(self, asker: AskingUser, peer: str, prompt: str, mode: Mode) -> tuple[RunningTurn, str]:
        """Ask one peer or agent by name; returns the turn, and the public id of the session that is asked.

        Raises:
            An error of `operators.wire.errors.REFUSED`: the hub sent nothing.
        """
        target, session_id, files = await db_call(find_route_target)(peer, prompt, asker.user_id)
        tells = mode == "tell"
        wait_s = TURN_WAIT_S if tells else self.reply_wait_s
        running = await self._asking.ask(
            asker, target, prompt, surface=Surface.ROUTE, wait_s=wait_s, tells=tells, files=files
        )
        return running, session_id

    async def probe(self, asker: AskingUser, prompt: str, peers: Sequence[str] | None) -> list[ProbeTarget]:
        """Prompt many peers without waiting for replies; returns each peer with its status.

        Raises:
            FilesRefused: nothing was sent.
        """
        files = await db_call(check_files)(prompt, asker.user_id)
        found = await db_call(find_probe_targets)(peers, asker.user_id)
        return await asyncio.gather(*(self._ask_peer(asker, one, prompt, files) for one in found))

    async def _ask_peer(
        self, asker: AskingUser, probed: ProbeTarget, prompt: str, files: tuple[int, ...]
    ) -> ProbeTarget:
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
