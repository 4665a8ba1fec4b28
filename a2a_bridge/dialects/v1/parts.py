"""Parts of an A2A 1.0 message: which of them an agent here takes."""

from msgspec import UNSET

from a2a_bridge.dialects.reading import check_content
from a2a_bridge.errors import CONTENT_TYPE_NOT_SUPPORTED
from agents.transcript.pieces import Part
from kit.asgi import media_type_of
from kit.jsonrpc import RpcError

INPUT_MODES = frozenset({"", "text/plain", "application/json"})  # none named, or one of every card's


def check_part(part: Part, where: str) -> None:
    """Check one.

    Raises:
        RpcError: -32602, it is not sound; -32005, it is a file, or of a media type the card does not list.
    """
    check_content(part, where)
    if part.raw is not UNSET or part.url is not UNSET:
        raise RpcError(CONTENT_TYPE_NOT_SUPPORTED, f"{where}: the agent takes text and data, no files")
    if part.media_type not in INPUT_MODES and media_type_of(part.media_type) not in INPUT_MODES:
        raise RpcError(
            CONTENT_TYPE_NOT_SUPPORTED, f"{where}.mediaType: the agent takes text/plain and application/json"
        )
