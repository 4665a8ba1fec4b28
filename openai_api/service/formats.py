"""Whether a format, or a reply in it, is sound.

One thread runs one check after the other: several threads would hold up the event loop. The first check imports
`jsonschema`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from a2a_bridge.wire.dialects.reading import invalid
from kit.strict_json import UnreadableText
from openai_api.wire.formats import ReplyFormat, bare_json, read_json

SCHEMAS = "openai_api.service.schemas"
Found = TypeVar("Found")
Given = TypeVarTuple("Given")

_thread = ThreadPoolExecutor(1, "formats")


class CheckedReply(NamedTuple):
    """A reply without its fence; or what is wrong with it. `is_final`: asking again would not mend it."""

    content: str = ""
    flaw: str = ""
    is_final: bool = False


async def check_format(wanted: ReplyFormat) -> None:
    """Check the schema of a format.

    Raises:
        RpcError: -32602, it is not sound, or demands too much work.
    """
    if wanted.schema is not None:
        flaw = await _in_thread(_find_schema_flaw, wanted.schema)
        if flaw:
            raise invalid(wanted.field, f"{wanted.field}: {flaw}")


async def check_reply(wanted: ReplyFormat, reply: str) -> CheckedReply:
    """Check a reply."""
    return await _in_thread(_check, wanted, reply)


def _in_thread(check: Callable[[*Given], Found], *given: *Given) -> Awaitable[Found]:
    return asyncio.get_running_loop().run_in_executor(_thread, check, *given)


def _find_schema_flaw(schema: dict[str, Any]) -> str:
    flaw: str = import_module(SCHEMAS).find_schema_flaw(schema)
    return flaw


def _check(wanted: ReplyFormat, reply: str) -> CheckedReply:
    content = bare_json(reply)
    try:
        value = read_json(content)
    except UnreadableText as wrong:
        return CheckedReply(flaw=str(wrong))
    if wanted.schema is None:
        flaw = "" if isinstance(value, dict) else "the reply is no JSON object"
        return CheckedReply(flaw=flaw) if flaw else CheckedReply(content)
    schemas = import_module(SCHEMAS)
    try:
        flaw = schemas.find_flaw(value, wanted.schema)
    except schemas.Uncheckable as wrong:
        return CheckedReply(flaw=f"the schema cannot be applied: {wrong}", is_final=True)
    return CheckedReply(flaw=flaw) if flaw else CheckedReply(content)
