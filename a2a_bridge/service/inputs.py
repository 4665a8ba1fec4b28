"""What a message holds besides text: compared with the agent's card, and files kept for the agent and the caller.

The task and its history name a file by the hub's address, so that its bytes are kept once. The agent gets
the parts as the caller sent them. Addresses elsewhere are passed on, and the hub never opens them.
"""

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET
from msgspec.structs import replace

from a2a_bridge.service.calls import Call, digest_of
from a2a_bridge.service.services import Services, find
from a2a_bridge.wire.dialects.reading import invalid, is_of_modes
from a2a_bridge.wire.errors import file_gone, file_refused, input_refused, no_room_for_files, wrong_mode
from a2a_bridge.wire.requests import InputNeed, Send
from accounts.quotas import QuotaExceeded
from agents.models import File
from agents.models.agent import HUB_MODES, Agent
from agents.transcript import callers_files
from agents.transcript.callers_files import Destination
from agents.transcript.files import Upload
from agents.transcript.pieces import LEFT_OUT, Part, describe_left_out, note_of_file
from kit.asgi import RequestRefused
from kit.async_db import db_call, request_call


@dataclass(slots=True)
class SentFile:
    """A file of a message. `number`: of its part, from 0; `file`: the row that the hub keeps; None for an address
    elsewhere.
    """

    number: int
    part: Part
    need: InputNeed
    named_id: int | None = None
    file: File | None = None

    @property
    def has_bytes(self) -> bool:
        """True if the message holds the content of the file."""
        return isinstance(self.part.raw, str) and self.part.raw != ""

    @property
    def upload(self) -> Upload:
        """The bytes of the file, with the names that the caller gives."""
        raw = str(self.part.raw).replace("-", "+").replace("_", "/")
        return Upload(filename=self.part.filename, mime=self.part.media_type or None, data=base64.b64decode(raw))


@dataclass(slots=True)
class MessageFiles:
    """The files of one message, with the ids of those that the hub keeps."""

    found: list[SentFile] = field(default_factory=list)

    @property
    def named(self) -> dict[int, SentFile]:
        """The files that the message names by the hub's address, by id."""
        return {one.named_id: one for one in self.found if one.named_id is not None}

    @property
    def kept(self) -> list[tuple[SentFile, File]]:
        """The files that the hub keeps, each with its row."""
        return [(one, one.file) for one in self.found if one.file is not None]


async def take_inputs(services: Services, call: Call, send: Send) -> Send:
    """Compare what a message holds, and accepts, besides text and JSON with its agent's modes; keep its files.

    An agent that lists text and JSON alone takes no files, not even of these.

    Raises:
        RpcError: the agent does not take a part of it, or gives nothing that its caller accepts; or a file is
            refused.
    """
    if not (send.needs or send.only_modes):
        return send
    files = _find_files(send)
    user_id = call.caller.identity.user_id
    context_id = send.context_id
    if files.found and send.task_id:
        context_id = (await find(services, call, send.task_id)).context_id
    to = Destination(call.caller.agent.session_id, context_id)
    if files.named:
        await _find_named(files, user_id, to)
    taken, given = await db_call(_load_modes)(call.caller.agent.agent_id)
    left_out = _check_modes(send, files, taken)
    if send.only_modes:
        _check_accepted(send.only_modes, given)
    files.found = [one for one in files.found if one.number not in left_out]
    if any(one.has_bytes or one.file for one in files.found):
        digest = digest_of(send)
        await _keep(files, user_id, to)
        send = replace(send, digest=digest)
    return _with_files(send, files, left_out)


def _find_files(send: Send) -> MessageFiles:
    needs = iter([need for need in send.needs if need.is_file])
    files = MessageFiles()
    for number, part in enumerate(send.message.parts):
        if part.is_file:
            named_id = callers_files.find_id(part.url) if isinstance(part.url, str) else None
            files.found.append(SentFile(number, part, next(needs), named_id))
    return files


async def _find_named(files: MessageFiles, user_id: int, to: Destination) -> None:
    """Find the files that the message names, and take their media types for what the message says of them.

    Raises:
        RpcError: the caller has no such file, or no room for a copy.
    """
    try:
        rows: Mapping[int, File] = await db_call(callers_files.prepare_sent)(user_id, list(files.named), to)
    except QuotaExceeded as full:
        raise no_room_for_files(str(full)) from None
    for key, one in files.named.items():
        one.file = rows.get(key)
        if one.file is None:
            raise file_gone(one.need.where)
        one.need = replace(one.need, media_type=one.file.mime)


def _check_modes(send: Send, files: MessageFiles, taken: Sequence[str]) -> frozenset[int]:
    """Compare the parts with what the agent takes; returns the numbers of the files that are left out.

    Raises:
        RpcError: a part is not taken.
    """
    takes_files = not set(taken).issubset(HUB_MODES)
    left_out: set[int] = set()
    for one in files.found:
        if takes_files and is_of_modes(one.need.media_type, taken):
            continue
        if not send.leaves_out:
            raise input_refused(one.need.where, taken)
        left_out.add(one.number)
    for need in send.needs:
        if not need.is_file and not is_of_modes(need.media_type, taken):
            raise input_refused(need.where, taken)
    return frozenset(left_out)


def _check_accepted(only_modes: Sequence[str], given: Sequence[str]) -> None:
    fits = [is_of_modes(mode, only_modes) for mode in given]
    fits += [is_of_modes(mode, given) for mode in only_modes]
    if not any(fits):
        raise wrong_mode(only_modes, given)


def _load_modes(agent_id: int | None) -> tuple[list[str], list[str]]:
    """The media types that an agent or one of its skills takes, and gives, by its card."""
    agent = Agent.objects.only("input_modes", "output_modes", "skills").filter(pk=agent_id or 0).first()
    if agent is None:
        return [*HUB_MODES], [*HUB_MODES]
    return agent.taken_modes, agent.given_modes


async def _keep(files: MessageFiles, user_id: int, to: Destination) -> None:
    """Check and store the files that the message holds.

    Raises:
        RpcError: one is refused, or the files are too many or too large.
    """
    within = [one for one in files.found if one.has_bytes]
    uploads = [one.upload for one in within]
    try:
        sizes = [len(one.data) for one in uploads] + [one.file.size for one in files.found if one.file]
        callers_files.check_together(sizes)
    except ValueError as wrong:
        raise invalid("message.parts", f"message.parts: {wrong}") from None
    if not within:
        return
    checked = []
    for one, upload in zip(within, uploads, strict=True):
        try:  # a scanner may take its time: not in a thread that the ledger's look-ups need
            checked.append(await request_call(callers_files.check_upload)(upload))
        except RequestRefused as refused:
            raise file_refused(refused, one.need.where) from None
    try:
        rows = await db_call(callers_files.add_all)(user_id, checked, to)
    except QuotaExceeded as full:
        raise no_room_for_files(str(full)) from None
    for one, row in zip(within, rows, strict=True):
        one.file = row


def _with_files(send: Send, files: MessageFiles, left_out: Collection[int]) -> Send:
    """The message with addresses instead of bytes, and with a line about each file that has the file's id."""
    if not files.found:
        return send
    shown, sent = [*send.message.parts], [*send.message.parts]
    question = send.question
    for one, file in files.kept:
        part = _named_part(one.part, file)
        shown[one.number] = part
        if one.named_id is not None:
            sent[one.number] = part
        head, old, tail = question.rpartition(note_of_file(one.number + 1, one.part))
        note = note_of_file(one.number + 1, part, kept=(file.size, file.pk))
        question = f"{head}{note}{tail}" if old else question
    lines = [
        describe_left_out(f"message.parts[{number}]", send.message.parts[number]) for number in sorted(left_out)
    ]
    metadata = send.metadata
    if send.leaves_out:
        metadata = {LEFT_OUT: lines} if lines else UNSET
    return replace(
        send,
        message=replace(send.message, parts=tuple(shown)),
        question=question,
        parts=tuple(part for number, part in enumerate(sent) if number not in left_out),
        files=tuple(dict.fromkeys(file.pk for _, file in files.kept)),
        metadata=metadata,
    )


def _named_part(part: Part, file: File) -> Part:
    """The part with the file's address at this hub."""
    is_named = part.raw is UNSET
    return replace(
        part,
        raw=UNSET,
        url=callers_files.address_of(file.pk),
        media_type=file.mime if is_named else part.media_type,
        filename=(part.filename or file.filename) if is_named else part.filename,
    )
