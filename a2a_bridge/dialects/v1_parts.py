"""Parts of an A2A 1.0 message: which of them an agent here takes."""

from msgspec import UNSET

from a2a_bridge.dialects.reading import check_base64, invalid
from a2a_bridge.errors import CONTENT_TYPE_NOT_SUPPORTED
from agents.pieces import Part
from kit.jsonrpc import RpcError

INPUT_MODES = frozenset({"", "text/plain", "application/json"})  # none named, or one of every card's


def check_part(part: Part, where: str) -> Part:
    """The part.

    Raises:
        RpcError: -32602, it is not sound; -32005, it is a file, or of a media type the card does not list.
    """
    contents = [one for one in (part.text, part.raw, part.url, part.data) if one is not UNSET]
    if len(contents) != 1:
        raise invalid(where, f"{where}: want exactly one of text, raw, url, data")
    if isinstance(part.raw, str):
        check_base64(part.raw, f"{where}.raw")
    if part.raw is not UNSET or part.url is not UNSET:
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, f"{where}: the agent takes text and data, no files")
    if part.media_type.partition(";")[0].strip().lower() not in INPUT_MODES:
        raise RpcError(
            CONTENT_TYPE_NOT_SUPPORTED, f"{where}.mediaType: the agent takes text/plain and application/json"
        )
    return part
