"""The state of one socket of `a2a-v1`: the frames it takes now, and the flaws that close it.

The module does no I/O and reads no clock.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import parse_qs

from agents.core.ports import Clock
from gateway.wire.errors import (
    MESSAGE_ERRORS,
    TOO_LATE,
    FrameRefused,
    GatewayErrorCode,
    bad_content,
    bad_type,
    forbidden,
)
from gateway.wire.frame_types import FRAME_TYPES, FrameType, is_agent_name
from gateway.wire.frames import (
    VERSION,
    Envelope,
    check_frame,
    name_frame,
    read_object,
    read_type,
)
from kit.account_pace import TokenBucket
from kit.durations import seconds
from kit.sockets import POLICY_VIOLATION

SUBPROTOCOL = "a2a-v1"
NORMAL = 1000
UNSUPPORTED_DATA = 1003
UNAUTHORIZED = 4001
TOO_MANY_FRAMES = 4029

FRAMES_A_SECOND = 100.0
BURST = 200.0
RATE_TEXT = f"at most {FRAMES_A_SECOND:g} frames a second, {BURST:g} at once"
LIMITED_FOR_S = 10.0
MAX_FLAWS = 20
FLAWS_WITHIN_S = 60.0
MAX_AUTH_FAILURES = 3
SIGN_IN = "sign in first: send auth with a token"
DEFAULT_MS = 30_000
DEFAULT_HEARTBEAT_S = seconds(30.0)
NUMBERS_MS = range(1_000, 600_001)
ALWAYS_SENT = frozenset({"error", "handshake", "auth-response", "ping", "pong", "disconnect"})


class SocketState(IntEnum):
    """The states of a connection, with the numbers of the protocol."""

    CONNECTING = 0
    OPEN = 1
    CLOSING = 2
    CLOSED = 3


class UpgradeRefused(Exception):
    """The upgrade asks for a protocol that this hub does not speak; the text is public."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters in the address and the headers of a client's upgrade.

    `heartbeat_s`: how often the hub pings it. `flaws`: values that the hub does not take, for which
    the defaults hold.
    """

    subprotocol: str | None
    timeout_ms: int
    heartbeat_s: float
    agent_id: str
    token: str
    flaws: tuple[FrameRefused, ...]


def read_parameters(query: str, subprotocols: Sequence[str]) -> Parameters:
    """The parameters of an upgrade.

    Raises:
        UpgradeRefused: it offers only protocols that the hub does not speak, or over 50 parameters.
    """
    try:
        given = {name: values[0] for name, values in parse_qs(query, max_num_fields=50).items()}
    except ValueError:
        raise UpgradeRefused("the address has too many parameters") from None
    if subprotocols and SUBPROTOCOL not in subprotocols:
        raise UpgradeRefused(f"this socket speaks the subprotocol {SUBPROTOCOL}")
    if not subprotocols and given.get("protocol", SUBPROTOCOL) != SUBPROTOCOL:
        raise UpgradeRefused(f"this socket speaks the protocol {SUBPROTOCOL}")
    flaws = [flaw for name in ("timeout", "heartbeat") if (flaw := _flaw_of(name, given))]
    agent_id = given.get("agentId", "")
    if agent_id and not is_agent_name(agent_id):
        text = "agentId: want a lower-case letter, then letters, digits and hyphens, 64 in all"
        flaws.append(bad_content(text, field="agentId", close_code=POLICY_VIOLATION))
    return Parameters(
        subprotocol=SUBPROTOCOL if subprotocols else None,
        timeout_ms=_read_ms("timeout", given) or DEFAULT_MS,
        heartbeat_s=heartbeat_ms / 1000 if (heartbeat_ms := _read_ms("heartbeat", given)) else DEFAULT_HEARTBEAT_S,
        agent_id=agent_id,
        token=given.get("token", ""),
        flaws=tuple(flaws),
    )


class GatewayProtocol:
    """Reads the frames of one connection in the order of checks of the protocol, and counts what it refuses.

    `set_heartbeat`: called with the interval of pings, in seconds, that the client wants.
    """

    def __init__(
        self, clock: Clock, timeout_ms: int, set_heartbeat: Callable[[float], None] | None = None
    ) -> None:
        self._clock = clock
        self._set_heartbeat = set_heartbeat
        self.timeout_ms = timeout_ms
        self.is_authenticated = False
        self._token_until: float | None = None
        self._supported: frozenset[str] | None = None
        self._flaws: deque[float] = deque(maxlen=MAX_FLAWS)
        self._auth_failures = 0
        self._frames = TokenBucket(FRAMES_A_SECOND, BURST, clock)
        self._limited_since: float | None = None

    def read(self, text: str | None) -> Envelope:
        """Read one message of the client.

        Raises:
            FrameRefused: it is answered by this error.
        """
        if text is None:
            raise FrameRefused(GatewayErrorCode.PROTOCOL_ERROR, "frames are text", close_code=UNSUPPORTED_DATA)
        frame = read_object(text)
        try:
            self._count_frame()
            type_ = read_type(frame)
            self._check_allowed(type_)
            return check_frame(frame, type_)
        except FrameRefused as refused:
            if frame.get("type") == "error":
                refused.is_silent = True
            elif frame.get("type") == "disconnect" and refused.code is GatewayErrorCode.INVALID_CONTENT:
                refused.close_code = NORMAL
            raise name_frame(refused, frame) from None

    def count_flaw(self, refused: FrameRefused) -> FrameRefused | None:
        """Note a refusal; the error that ends the connection when there were too many within a minute."""
        if refused.code not in MESSAGE_ERRORS or refused.reason in TOO_LATE:
            return None
        now = self._clock()
        self._flaws.append(now)
        if len(self._flaws) < MAX_FLAWS or now - self._flaws[0] > FLAWS_WITHIN_S:
            return None
        text = f"{MAX_FLAWS} frames were not in order within {FLAWS_WITHIN_S:g} s"
        return FrameRefused(GatewayErrorCode.PROTOCOL_ERROR, text, close_code=POLICY_VIOLATION)

    def sign_in(self, token_left_s: float | None) -> None:
        """Take all frames from now on. `token_left_s`: as long as the token lasts; None: until it is revoked."""
        self.is_authenticated = True
        self._token_until = None if token_left_s is None else self._clock() + token_left_s

    @property
    def has_expired(self) -> bool:
        """True if the token has expired, so that only a new one is taken."""
        return self._token_until is not None and self._clock() >= self._token_until

    def count_auth_failure(self) -> int:
        """Count a token that was not taken; the code that the connection is closed with, 0: it stays open."""
        self._auth_failures += 1
        return UNAUTHORIZED if self._auth_failures >= MAX_AUTH_FAILURES else 0

    def take_capabilities(self, capabilities: Mapping[str, object]) -> None:
        """Replace what the client advertised.

        Raises:
            FrameRefused: 1004, 2003.
        """
        version = capabilities.get("version", VERSION)
        if str(version).partition(".")[0] != VERSION.partition(".")[0]:
            text = f"this hub speaks version {VERSION}"
            raise FrameRefused(GatewayErrorCode.PROTOCOL_ERROR, text, close_code=POLICY_VIOLATION)
        for name in ("timeout", "heartbeat"):
            if flaw := _flaw_of(name, capabilities, f"content.capabilities.{name}"):
                raise flaw
        self.timeout_ms = _read_ms("timeout", capabilities) or self.timeout_ms
        if self._set_heartbeat is not None and (heartbeat_ms := _read_ms("heartbeat", capabilities)):
            self._set_heartbeat(heartbeat_ms / 1000)
        types = capabilities.get("supportedMessageTypes")
        self._supported = frozenset(map(str, types)) & FRAME_TYPES.keys() if isinstance(types, list) else None

    def may_push(self, type_name: str) -> bool:
        """True if the client takes frames of that type that are no replies to it."""
        return self._supported is None or type_name in ALWAYS_SENT or type_name in self._supported

    def _check_allowed(self, type_: FrameType) -> None:
        if not type_.taken:
            raise forbidden(f"only the gateway sends {type_.name}", field="type")
        if not self.is_authenticated and not type_.before_auth:
            raise FrameRefused(GatewayErrorCode.AUTH_REQUIRED, SIGN_IN)
        if self.has_expired and not type_.before_auth:
            raise FrameRefused(GatewayErrorCode.TOKEN_EXPIRED, "the token has expired: send auth with a new one")

    def _count_frame(self) -> None:
        if self._frames.is_full:
            self._limited_since = None
        retry_in_s = self._frames.take()
        if not retry_in_s:
            return
        now = self._clock()
        if self._limited_since is None:
            self._limited_since = now
        is_sustained = now - self._limited_since >= LIMITED_FOR_S
        raise FrameRefused(
            GatewayErrorCode.RATE_LIMITED,
            RATE_TEXT,
            retry_after_ms=max(1, int(retry_in_s * 1000)),
            close_code=TOO_MANY_FRAMES if is_sustained else 0,
        )


def _read_ms(name: str, given: Mapping[str, object]) -> int:
    """A number of milliseconds; 0 when it is absent or not in order."""
    return int(str(given[name])) if name in given and _flaw_of(name, given) is None else 0


def _flaw_of(name: str, given: Mapping[str, object], field: str = "") -> FrameRefused | None:
    """The refusal of a number of milliseconds; None when it is absent or in order."""
    if name not in given:
        return None
    text = str(given[name])
    if text.isascii() and text.isdigit() and len(text) <= len(str(NUMBERS_MS[-1])) and int(text) in NUMBERS_MS:
        return None
    return bad_type(f"{name}: want {NUMBERS_MS[0]} to {NUMBERS_MS[-1]} milliseconds", field=field or name)
