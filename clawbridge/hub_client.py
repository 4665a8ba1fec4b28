"""The public API of one hub over HTTP: A2A 1.0 as HTTP+JSON, and REST. Every wait ends."""

from collections.abc import Generator
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec

from clawbridge import VERSION
from clawbridge.terminal import CommandFailure, ExitCode, bad_arguments, one_line

CONNECT_WITHIN_S = 10.0
SILENT_FOR_S = 30.0  # the hub sends a byte every 3 s while an agent works
MAX_EVENT_BYTES = 16 * 1024 * 1024
LOOPBACK = ("localhost", "127.0.0.1", "::1")
UNAUTHORIZED = "the hub refuses the token: run `clawbridge login`, or check --token-file and CLAWBRIDGE_TOKEN"
NO_AGENT = "no such agent"
ENDED = frozenset({"COMPLETED", "FAILED", "REJECTED", "CANCELED"})
Value = TypeVar("Value")
STATE_PREFIX = "TASK_STATE_"


class WireStruct(msgspec.Struct, frozen=True, rename="camel"):
    """JSON of A2A 1.0; unknown members are ignored."""


class Part(WireStruct, frozen=True):
    """A piece of a message or an artifact. `data`: any JSON."""

    text: str | None = None
    data: Any = msgspec.UNSET
    raw: str | None = None
    url: str | None = None
    filename: str = ""
    media_type: str = ""


class Message(WireStruct, frozen=True):
    """A message of an agent."""

    parts: list[Part] = []

    @property
    def text(self) -> str:
        """Its texts, one below the other."""
        return "\n".join(part.text for part in self.parts if part.text)


class Status(WireStruct, frozen=True):
    """The state of a task. `message`: why, or what the agent asks."""

    state: str
    message: Message | None = None

    @property
    def name(self) -> str:
        """The state without its prefix."""
        return self.state.removeprefix(STATE_PREFIX)

    @property
    def has_ended(self) -> bool:
        return self.name in ENDED

    @property
    def text(self) -> str:
        return self.message.text if self.message else ""


class Artifact(WireStruct, frozen=True):
    """A part of the answer."""

    artifact_id: str
    name: str = ""
    parts: list[Part] = []


class Task(WireStruct, frozen=True):
    """A task of the caller's."""

    id: str
    status: Status
    context_id: str = ""
    artifacts: list[Artifact] = []


class StatusUpdate(WireStruct, frozen=True):
    """The task's new state."""

    task_id: str
    status: Status
    context_id: str = ""


class ArtifactUpdate(WireStruct, frozen=True):
    """The next piece of the answer; with `last_chunk` and without `append`, all of an artifact once more."""

    task_id: str
    artifact: Artifact
    context_id: str = ""
    append: bool = False
    last_chunk: bool = False


class StreamEvent(WireStruct, frozen=True):
    """One frame of a stream: one of them is there."""

    task: Task | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None
    message: Message | None = None


class Skill(WireStruct, frozen=True):
    """What a skill of an agent takes besides."""

    input_modes: list[str] = []


class Card(WireStruct, frozen=True):
    """The media types that an agent takes, by its card."""

    default_input_modes: list[str] = []
    skills: list[Skill] = []

    @property
    def input_modes(self) -> list[str]:
        """The media types of the agent and of its skills."""
        of_skills = [mode for skill in self.skills for mode in skill.input_modes]
        return list(dict.fromkeys([*self.default_input_modes, *of_skills]))


class AgentRow(msgspec.Struct):
    """The columns of an agent in a list."""

    handle: str
    name: str
    tagline: str
    online: bool


class AgentPage(msgspec.Struct):
    """`GET /api/v1/agents`."""

    items: list[AgentRow]
    total: int


class Broken(Exception):
    """The connection failed or fell silent; what was sent may have reached the hub."""


class HubClient:
    """Calls one hub with one token. Use it as a context manager."""

    def __init__(self, url: str, token: str = "", *, within_s: float = SILENT_FOR_S) -> None:
        self.url = url
        headers = {"User-Agent": f"clawbridge/{VERSION}"} | ({"Authorization": f"Bearer {token}"} if token else {})
        timeout = httpx2.Timeout(within_s, connect=min(within_s, CONNECT_WITHIN_S))
        self._http = httpx2.Client(base_url=url, headers=headers, timeout=timeout, follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._http.close()

    def call(self, method: str, path: str, *, query: dict[str, Any] | None = None, body: Any = None) -> Any:
        """The JSON that the hub answers; None for an empty answer.

        Raises:
            Failure: the hub is out of reach, or refused.
        """
        try:
            response = self._http.request(method, path, params=query, json=body, headers={"A2A-Version": "1.0"})
        except httpx2.HTTPError as problem:
            raise self.unreachable(problem) from None
        if not response.is_success:
            raise self.refusal(response)
        return self._decode(response.content, Any) if response.content else None

    def read(self, answer: Any, wanted: type[Value]) -> Value:
        """The JSON of an answer as a value of that type.

        Raises:
            Failure: the hub answered something else.
        """
        try:
            return msgspec.convert(answer, wanted)
        except msgspec.ValidationError as problem:
            raise self._unexpected(problem) from None

    def stream(self, path: str, body: Any, *, key: str, after: str = "") -> Generator[tuple[str, StreamEvent]]:
        """The events of a streaming send, each with its id. `key`: the send may be repeated under it.

        `after`: the id of the event that was read last, to continue a stream.

        Raises:
            Broken: the stream ended early.
            Failure: the hub is out of reach, or refused.
        """
        headers = {"A2A-Version": "1.0", "Idempotency-Key": key} | ({"Last-Event-ID": after} if after else {})
        try:
            with self._http.stream("POST", path, json=body, headers=headers) as response:
                if not response.is_success:
                    response.read()
                    raise self.refusal(response)
                for event in httpx2.EventSource(response, MAX_EVENT_BYTES):
                    if event.data:
                        yield event.id, self._decode(event.data, StreamEvent)
        except httpx2.SSEError as problem:
            raise self._unexpected(problem) from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as problem:
            if after:
                raise Broken from None
            raise self.unreachable(problem) from None
        except httpx2.HTTPError as problem:
            raise Broken(str(problem)) from None

    def unreachable(self, problem: Exception) -> CommandFailure:
        """The failure of a hub that does not answer."""
        why = str(problem) or type(problem).__name__
        return CommandFailure(ExitCode.UNREACHABLE, f"no answer from {self.url}: {why}")

    def refusal(self, response: httpx2.Response) -> CommandFailure:
        """The failure that the hub's error says."""
        try:
            body = msgspec.json.decode(response.content)
        except (msgspec.DecodeError, RecursionError):
            body = None
        error = body.get("error") if isinstance(body, dict) else None
        text = (error if isinstance(error, dict) else body or {}).get("message") if error else None
        if not isinstance(text, str):
            problem = f"{self.url} answered HTTP {response.status_code}"
            if target := response.headers.get("Location"):  # not followed: the token is for this hub
                return CommandFailure(ExitCode.UNREACHABLE, f"{problem}: it redirects to {one_line(target)}")
            return CommandFailure(ExitCode.UNREACHABLE, f"{problem}: no Clawbridge hub?")
        reason = error if isinstance(error, str) else ""
        if response.status_code == 401:
            return CommandFailure(ExitCode.NOT_SIGNED_IN, UNAUTHORIZED, reason)
        code = ExitCode.NOT_SIGNED_IN if response.status_code == 403 else ExitCode.REFUSED
        if wait := response.headers.get("Retry-After"):
            text += f", retry in {wait} s"
        if text == NO_AGENT:
            text += "; `clawbridge agents` lists those that you may ask"
        return CommandFailure(code, text, reason)

    def _decode(self, content: bytes | str, wanted: Any) -> Any:
        try:
            return msgspec.json.decode(content, type=wanted)
        except (msgspec.DecodeError, RecursionError) as problem:
            raise self._unexpected(problem) from None

    def _unexpected(self, problem: Exception) -> CommandFailure:
        return CommandFailure(
            ExitCode.UNREACHABLE, f"{self.url} answered what no Clawbridge hub answers: {problem}"
        )


def agent_path(handle: str) -> str:
    """Where an agent is asked, from `@owner/slug` or `owner/slug`.

    Raises:
        Failure: it is no handle.
    """
    owner, slash, slug = handle.removeprefix("@").partition("/")
    if not (owner and slash and slug) or not all(c.isascii() and (c.isalnum() or c in "-_") for c in owner + slug):
        raise bad_arguments(f"{handle!r} is no handle: want @owner/slug, such as @demo/echo")
    return f"/api/a2a/v1/agents/{owner}/{slug}"


def checked_hub(url: str) -> str:
    """The address of a hub in one spelling.

    Raises:
        Failure: it is none.
    """
    problem = bad_arguments(f"hub {url!r}: want an address such as https://hub.example")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise problem from None
    extras = (parts.username, parts.password, parts.query, parts.fragment)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == 0
        or any(extras)
        or not url.isascii()
    ):
        raise problem
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def is_open_to_listeners(hub: str) -> bool:
    """Whether a token travels to this hub unencrypted, over a network."""
    parts = urlsplit(hub)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK
