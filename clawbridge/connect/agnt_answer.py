"""Answers the AGNT envelopes of a network with a program (`--agnt`)."""

import json
import logging
import time
from asyncio import timeout
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from clawbridge.agnt import Ask, SeenSignatures, describe_response, find_ask, read_ask
from clawbridge.agnt.answers import MAX_RETRY_AFTER_S, parse_json
from clawbridge.agnt.fields import (
    ACTING_INTENTS,
    CANCEL,
    CONFIRM,
    PING,
    EnvelopeRefused,
    ErrorCode,
    build_envelope,
    describe_error,
)
from clawbridge.agnt.replies import BadReply, read_cancelled, read_reply
from clawbridge.agnt.signing import SigningKeys, describe_via, read_key
from clawbridge.connect.answers import AnswerFailed, ProgramAnswer
from clawbridge.connect.command import Command
from clawbridge.connect.frames import Question
from clawbridge.connect.reply_parts import Artifact, Rejected, ReplyPart

logger = logging.getLogger(__name__)

MAX_RESULT_BYTES = 262_144
MAX_RESULT_LEVELS = 32
MAX_MESSAGE_CHARS = 500
ARTIFACT = "envelope"
WANTS_ENVELOPE = "this agent takes AGNT envelopes: send one data part with the fields of an AGPEnvelope"
READERS = {CONFIRM: read_reply, CANCEL: read_cancelled}
Json = dict[str, Any]


class AgntAnswer(ProgramAnswer):
    """Answers an envelope with an envelope, whose payload a program prints; `network.ping` needs no program.

    `keys`: with them, an envelope whose payload is not signed with one of them is refused.
    """

    def __init__(self, command: Command, keys: SigningKeys | None) -> None:
        self._command = command
        self._keys = keys
        self._signatures = SeenSignatures()

    async def __call__(self, question: Question) -> AsyncIterator[ReplyPart]:
        """Yield the response as an artifact with one data part."""
        began_at, now_s = time.monotonic(), time.time()
        fields = find_envelope(question)
        if fields is None:
            yield Rejected(WANTS_ENVELOPE)
            return
        heading = find_ask(fields)
        try:
            ask, signature = read_ask(fields, keys=self._keys, now_s=now_s)
            if signature and ask.intent in ACTING_INTENTS:
                self._signatures.check(signature, ask, now_s)
            if ask.intent == PING:
                payload: Json = {"status": "ok", "agent_id": ask.to}
            else:
                payload = await self._run(ask, question)
        except EnvelopeRefused as refused:
            logger.warning("envelope %s of %r: %s: %s", question.chat_id, heading.sender, refused.code, refused)
            payload = describe_error(refused)
        elapsed_s = time.monotonic() - began_at
        response = describe_response(heading, payload, elapsed_s=elapsed_s, now=datetime.now(UTC))
        yield Artifact(artifact_id=ARTIFACT, parts=[{"data": response}], name="AGPEnvelope", last_chunk=True)

    def kill(self) -> None:
        """End every running program at once."""
        self._command.kill()

    async def _run(self, ask: Ask, question: Question) -> Json:
        """The payload that the program prints.

        Raises:
            EnvelopeRefused: the program printed an error or no payload, or took too long.
        """
        printed: list[str] = []
        room = MAX_RESULT_BYTES
        try:
            async with (
                timeout(ask.ttl_ms / 1000),
                aclosing(self._command(replace(question, text=envelope_line(ask)))) as pieces,
            ):
                async for piece in pieces:
                    room -= len(str(piece).encode())
                    if room < 0:
                        raise _fail(question, f"it printed over {MAX_RESULT_BYTES} bytes")
                    printed.append(str(piece))
        except TimeoutError:
            raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue did not answer in time") from None
        except AnswerFailed as failed:
            raise _fail(question, str(failed)) from None
        result = _read_result("".join(printed), question)
        if read := READERS.get(ask.intent):
            _check_reply(result, question, read)
        return result


def build_agnt_answer(command: Command, secrets: str) -> AgntAnswer:
    """Make the answer of `--agnt`.

    Args:
        command: what answers envelopes.
        secrets: with which the network signs: the current one, and maybe the one before, a line each. Without
            any, signatures are not checked.

    Raises:
        ValueError: the lines are no secrets; the text is one line.
    """
    lines = secrets.split()
    if not lines:
        return AgntAnswer(command, None)
    if len(lines) > 2:
        raise ValueError("want one secret, or the current one and the one before, a line each")
    current, *before = map(read_key, lines)
    return AgntAnswer(command, SigningKeys(current, before[0] if before else b"", float("inf")))


def find_envelope(question: Question) -> Json | None:
    """The fields of the envelope in a question: its data part, or else its text."""
    data = [part["data"] for part in question.parts if isinstance(part, Mapping) and "data" in part]
    if not data:
        try:
            data = [parse_json(question.text.encode(errors="replace"))]
        except ValueError:
            return None
    return data[0] if len(data) == 1 and isinstance(data[0], dict) and "intent" in data[0] else None


def envelope_line(ask: Ask) -> str:
    """The line that the program reads: the envelope; its payload without signature."""
    fields = build_envelope(
        sender=ask.sender,
        to=ask.to,
        intent=ask.intent,
        payload=ask.payload,
        agent_context=ask.agent_context,
        ttl_ms=ask.ttl_ms,
        timestamp=ask.timestamp,
    )
    if ask.via:
        fields["via"] = describe_via(ask.via)
    return json.dumps(fields) + "\n"


def _read_result(printed: str, question: Question) -> Json:
    try:
        result = parse_json(printed.encode(errors="replace"))
    except ValueError:
        raise _fail(question, "it printed no JSON object") from None
    if not isinstance(result, dict) or not result:
        raise _fail(question, "it printed no JSON object, or an empty one")
    if _is_deeper_than(result, MAX_RESULT_LEVELS):
        raise _fail(question, f"what it printed is nested deeper than {MAX_RESULT_LEVELS} levels")
    if result.get("status") == "error":
        raise _read_error(result.get("error"), question)
    return result


def _check_reply(result: Json, question: Question, read: Callable[[Json], object]) -> None:
    """Tell the owner of a program what a network will not take; it gets the payload as it is."""
    try:
        read(result)
    except BadReply as bad:
        logger.warning("what the program printed for envelope %s is no reply to it: %s", question.chat_id, bad)


def _read_error(error: Any, question: Question) -> EnvelopeRefused:
    if not isinstance(error, dict) or error.get("code") not in list(ErrorCode):
        return _fail(question, "it printed an error without a code of AGNT")
    said, wait_s = error.get("message"), error.get("retry_after_s")
    return EnvelopeRefused(
        ErrorCode(error["code"]),
        said[:MAX_MESSAGE_CHARS] if isinstance(said, str) and said else "the venue refused",
        retry_after_s=min(wait_s, MAX_RETRY_AFTER_S) if type(wait_s) is int and wait_s > 0 else 0,
    )


def _is_deeper_than(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper_than(one, levels - 1) for one in inner)


def _fail(question: Question, why: str) -> EnvelopeRefused:
    """The error for a program that failed; why is for its owner alone."""
    logger.warning("the program failed for envelope %s: %s", question.chat_id, why)
    return EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "the venue's program failed")
