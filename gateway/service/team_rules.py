"""The rules of teams, by which every frame is checked, and the changes that owners make to teams."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import quotas
from accounts.models import User
from accounts.quotas import QuotaExceeded
from accounts.sealing import SecretUnreadable, reseal_all, seal, unseal
from agents.core import presence
from agents.core.ports import Clock
from agents.models import Connection, Halt
from gateway import limits
from gateway.models import EnvelopeKey, TeamAgent, TeamPolicy
from gateway.models.team import MAX_PEERS_NAMED, MAX_VOTERS
from gateway.service.seat import DEFAULT_ROLE, GATEWAY_LINK, MAX_CONFIG_BYTES, make_seat, read_role
from gateway.wire.errors import FrameRefused, GatewayErrorCode, forbidden
from gateway.wire.frame_types import FRAME_TYPES, is_agent_name, is_target
from gateway.wire.frames import ALG, Envelope, is_signed
from kit.async_db import db_call
from kit.ids import unguessable
from kit.names import NameRule
from kit.newest import NewestEntries
from kit.tasks import read_failure

WANTED_NAME = "want lower-case letters, digits and hyphens"
PEERS = NameRule(is_target, WANTED_NAME, most=MAX_PEERS_NAMED, most_chars=160)
VOTERS = NameRule(is_agent_name, WANTED_NAME, most=MAX_VOTERS, most_chars=160)
DEFAULT_TEAM = Path(__file__).with_name("data") / "default_team.json"
MAX_FILE_BYTES = 1_048_576
MAX_LOADED = 500


def change_agent(agent: TeamAgent, fields: dict[str, Any]) -> bool:
    """Change a row; an agent that becomes inactive loses its connection within seconds. False: the row is gone."""
    if fields and not TeamAgent.objects.filter(pk=agent.pk).update(**fields):
        return False
    for name, value in fields.items():
        setattr(agent, name, value)
    if not agent.is_active:
        end_connection(agent.owner_id, agent.name)
    return True


def end_connection(owner_id: int, name: str) -> bool:
    """End the connection of an agent; False when it has none.

    End the connection of an agent whose row is removed. The process that holds the socket closes it within
    seconds, with `disconnect` and `error`, and the program comes back.
    """
    theirs = Connection.objects.filter(session__owner_id=owner_id, session__routing_name=name)
    found = theirs.filter(session__link=GATEWAY_LINK).values_list("pk", flat=True).first()
    if found is not None:
        presence.remove_connection(found)
    return found is not None


def get_policy(owner_id: int) -> TeamPolicy:
    """The rules of a team; the defaults, not stored, where its owner has set none."""
    return TeamPolicy.objects.filter(owner_id=owner_id).first() or TeamPolicy(owner_id=owner_id)


class BadPolicy(Exception):
    """The rules contradict each other; the text is public. The hub wrote nothing."""


@transaction.atomic
def change_policy(owner_id: int, fields: dict[str, Any]) -> TeamPolicy:
    """Change rules of a team.

    Raises:
        BadPolicy: no agent is named that breaks ties, or it votes itself.
    """
    quotas.lock_owner(owner_id)
    policy = get_policy(owner_id)
    for name, value in fields.items():
        setattr(policy, name, value)
    if policy.breaks_ties and not policy.steward:
        raise BadPolicy("name the agent that breaks ties")
    if policy.breaks_ties and policy.steward in policy.members:
        raise BadPolicy("the agent that breaks ties cannot be a voter")
    policy.save()
    return policy


class BadTeamFile(Exception):
    """The file names no sound team; the text is public. The hub wrote nothing."""


class FileAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An agent of a file."""

    name: str
    role: str = DEFAULT_ROLE
    config: dict[str, Any] = {}


class TeamFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file."""

    agents: list[FileAgent]


def read_team(path: Path) -> list[FileAgent]:
    """The agents of a file, each once, with their roles as the wire writes them.

    Raises:
        BadTeamFile, OSError.
    """
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES + 1)
    if len(text) > MAX_FILE_BYTES:
        raise BadTeamFile(f"a team file has at most {MAX_FILE_BYTES} bytes")
    try:
        given = msgspec.json.decode(text, type=TeamFile).agents
    except (msgspec.DecodeError, RecursionError) as bad:
        raise BadTeamFile(f"this is no team file: {bad}") from None
    if len(given) > MAX_LOADED:
        raise BadTeamFile(f"a team file names at most {MAX_LOADED} agents")
    agents = [_check(one) for one in given]
    if len({one.name for one in agents}) < len(agents):
        raise BadTeamFile("a team file names each agent once")
    return agents


@transaction.atomic
def load_team(owner_id: int, agents: Sequence[FileAgent]) -> int:
    """Enroll agents with the roles and settings of a file; how many are new. Again changes nothing.

    Raises:
        BadTeamFile: the owner has no room for them; nothing was written.
    """
    count = 0
    try:
        for one in agents:
            make_seat(owner_id, one.name)
            row = TeamAgent.objects.filter(owner_id=owner_id, name=one.name).first()
            if row is None:
                limits.TEAM_AGENTS.check(owner_id)
                TeamAgent.objects.create(owner_id=owner_id, name=one.name, role=one.role, config=one.config)
                count += 1
            elif (row.role, row.config) != (one.role, one.config or row.config):
                row.role, row.config = one.role, one.config or row.config
                row.save(update_fields=["role", "config"])
    except QuotaExceeded as full:
        raise BadTeamFile(str(full)) from None
    return count


def _check(agent: FileAgent) -> FileAgent:
    role = read_role(agent.role)
    if not is_agent_name(agent.name):
        raise BadTeamFile(f"{agent.name[:64]!r} is no name: want lower-case letters, digits and hyphens")
    if role is None:
        raise BadTeamFile(f"{agent.name}: {agent.role[:64]!r} is no role: want 32 letters, digits and hyphens")
    if len(msgspec.json.encode(agent.config)) > MAX_CONFIG_BYTES:
        raise BadTeamFile(f"{agent.name}: config has at most {MAX_CONFIG_BYTES} bytes")
    return FileAgent(agent.name, role, agent.config)


PURPOSE = b"clawbridge keys of envelopes"
READ_EVERY_S = 1.0
TEAMS_KEPT = 1_000

Peers = Mapping[str, frozenset[str]]


class PeerLists(NamedTuple):
    """The lists of peers of a team's agents by name; an agent without one is in none."""

    may_send_to: Peers
    may_hear_from: Peers


class Rules(NamedTuple):
    """The rules of one team. `keys`: by their ids, where signatures are demanded.

    `relays_told`: messages that want no response pass without a turn; not while something of the team is halted,
    because admission decides then.
    """

    demands_signature: bool
    relays_told: bool
    keys: Mapping[str, bytes]
    peers: PeerLists


class AgentName(NamedTuple):
    """An agent by its team and name. `login`: of the team's owner."""

    owner_id: int
    login: str
    name: str

    def shown_to(self, other: "AgentName") -> str:
        """The name that the lists of another agent have: `name`, of another team `@owner/name`."""
        return (self.name if self.owner_id == other.owner_id else f"@{self.login}/{self.name}").lower()


class RulesCache:
    """Knows the rules of the teams that this process serves; a change counts within READ_EVERY_S."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known = NewestEntries[int, tuple[float, Rules]](TEAMS_KEPT)
        self._reading: dict[int, asyncio.Task[Rules]] = {}

    async def get(self, owner_id: int) -> Rules:
        """The rules of a team."""
        read_at, rules = self._known.get(owner_id, (0.0, None))
        if rules is not None and self._clock() - read_at < READ_EVERY_S:
            return rules
        reading = self._reading.get(owner_id)
        if reading is None:  # all frames that come meanwhile share one look at the database
            reading = self._reading[owner_id] = asyncio.create_task(self._read(owner_id))
            reading.add_done_callback(read_failure)
        return await asyncio.shield(reading)

    async def _read(self, owner_id: int) -> Rules:
        read_at = self._clock()
        try:
            rules = await db_call(_load)(owner_id)
        finally:
            del self._reading[owner_id]
        self._known[owner_id] = (read_at, rules)
        return rules

    async def may_message(self, sender: AgentName, recipient: AgentName) -> bool:
        """True if the lists of peers of both agents allow a message."""
        of_sender, of_recipient = await self.get(sender.owner_id), await self.get(recipient.owner_id)
        return allow_message(sender, of_sender.peers, recipient, of_recipient.peers)


def peer_error() -> FrameRefused:
    """The error for a message that a list of peers excludes."""
    return forbidden("the lists of peers of these two agents do not allow this", reason="peer_not_allowed")


def allow_message(sender: AgentName, of_sender: PeerLists, recipient: AgentName, of_recipient: PeerLists) -> bool:
    """True if the lists of the teams of two agents allow a message of one to the other."""
    may_send_to = of_sender.may_send_to.get(sender.name)
    may_hear_from = of_recipient.may_hear_from.get(recipient.name)
    if may_send_to is not None and recipient.shown_to(sender) not in may_send_to:
        return False
    return may_hear_from is None or sender.shown_to(recipient) in may_hear_from


def load_peers(agent: AgentName) -> PeerLists:
    """The lists of one agent, as the database has them."""
    return _read_peers(TeamAgent.objects.filter(owner_id=agent.owner_id, name=agent.name))


def _read_peers(agents: "QuerySet[TeamAgent]") -> PeerLists:
    found = agents.exclude(may_send_to=None, may_hear_from=None)
    rows = list(found.values_list("name", "may_send_to", "may_hear_from"))
    may_send_to = {name: _lower(peers) for name, peers, _ in rows if peers is not None}
    return PeerLists(may_send_to, {name: _lower(peers) for name, _, peers in rows if peers is not None})


def _load(owner_id: int) -> Rules:
    policy = get_policy(owner_id)
    return Rules(
        demands_signature=policy.requires_signature,
        relays_told=not policy.stores_told
        and not Halt.objects.active().filter(Q(user_id=owner_id) | Q(agent__owner_id=owner_id)).exists(),
        keys=_load_keys(owner_id) if policy.requires_signature else {},
        peers=_read_peers(TeamAgent.objects.filter(owner_id=owner_id)),
    )


def _lower(peers: list[str]) -> frozenset[str]:
    return frozenset(str(peer).lower() for peer in peers)


def _load_keys(owner_id: int) -> dict[str, bytes]:
    keys = {}
    for one in EnvelopeKey.objects.filter(owner_id=owner_id):
        try:
            keys[one.key_id] = unseal(one.secret, PURPOSE).encode()
        except SecretUnreadable:
            continue  # the key cannot be read, so no frame is verified by it: its team makes a new key
    return keys


async def check_signature(rules: RulesCache, owner_id: int, envelope: Envelope) -> None:
    """Check the signature of a frame, if its team demands one.

    Raises:
        FrameRefused: 5002 `bad_signature`; it has none, or not this one.
    """
    if FRAME_TYPES[envelope.type].before_auth:
        return
    team = await rules.get(owner_id)
    if team.demands_signature and not is_signed(envelope.frame, team.keys):
        text = f"metadata.signature: want {ALG} by a key of this team, over the canonical JSON of the frame"
        raise FrameRefused(GatewayErrorCode.AUTH_FAILED, text, field="metadata.signature", reason="bad_signature")


def make_key(owner: User, name: str) -> tuple[EnvelopeKey, str]:
    """A new key of a team, and its secret, which is shown this once. Call it in a transaction.

    Raises:
        accounts.quotas.QuotaExceeded: the team has as many keys as one may have.
    """
    limits.TEAM_KEYS.check(owner.pk)
    secret = unguessable("gwk_")
    key = EnvelopeKey.objects.create(
        owner=owner, key_id=unguessable("key-"), name=name, secret=seal(secret, PURPOSE)
    )
    return key, secret


def reseal_keys() -> tuple[int, int]:
    """Seal the keys of all teams with the newest key of the hub; how many, and how many cannot be read."""
    return reseal_all(EnvelopeKey.objects.all(), PURPOSE, "secret")
