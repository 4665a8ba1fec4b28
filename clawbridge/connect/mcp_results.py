"""From the result of an MCP tool to parts of a reply. No I/O."""

import json
import mimetypes
import re
from collections.abc import Iterator
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from clawbridge.connect.reply_parts import Artifact, Failed, ReplyPart
from clawbridge.part_checks import is_base64, is_web_url

MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*", re.IGNORECASE)
MAX_NAME_CHARS = 200


def read_result(result: CallToolResult) -> Iterator[ReplyPart]:
    """The reply: texts as text, everything else as artifacts. A result that reports an error ends as failed."""
    texts = [text for block in result.content if (text := _text(block))]
    if result.is_error:
        yield Failed("\n".join(texts) or "the tool failed")
        return
    if texts:
        yield "\n".join(texts)
    for number, block in enumerate(result.content, 1):
        if (part := _file(block, number)) is not None:
            yield Artifact(artifact_id=f"result-{number}", parts=[part], name=str(part["filename"]))
    if _adds(result.structured_content, texts):
        part = {"data": result.structured_content, "mediaType": "application/json"}
        yield Artifact(artifact_id="result", parts=[part], name="Result")


def _text(block: ContentBlock) -> str:
    """The text of a block in words; empty for a file."""
    if isinstance(block, TextContent):
        return block.text
    if isinstance(block, ResourceLink):
        return "" if is_web_url(block.uri) else f"{block.name}: {block.uri}"
    if isinstance(block, EmbeddedResource) and not isinstance(block.resource, BlobResourceContents):
        return block.resource.text
    return "" if is_base64(_bytes_of(block)) else "(a file that is not valid base64 was left out)"


def _file(block: ContentBlock, number: int) -> dict[str, Any] | None:
    """A block as an A2A part with a file; None when its text says all."""
    if isinstance(block, ResourceLink):
        return _part(number, block.name, block.mime_type, url=block.uri) if is_web_url(block.uri) else None
    if isinstance(block, ImageContent | AudioContent):
        name, media_type = "", block.mime_type
    elif isinstance(block, EmbeddedResource):
        name, media_type = block.resource.uri.rpartition("/")[2], block.resource.mime_type or ""
    else:
        return None
    raw = _bytes_of(block)
    return _part(number, name, media_type, raw=raw) if raw and is_base64(raw) else None


def _part(number: int, name: str, media_type: str | None, **content: str) -> dict[str, Any]:
    known = media_type if media_type and MEDIA_TYPE.fullmatch(media_type) else ""
    ending = mimetypes.guess_extension(known) or ""
    part = {**content, "filename": name[:MAX_NAME_CHARS] or f"result-{number}{ending}"}
    return part | ({"mediaType": known[:MAX_NAME_CHARS]} if known else {})


def _bytes_of(block: ContentBlock) -> str:
    """The base64 of a block, empty for a block without."""
    if isinstance(block, ImageContent | AudioContent):
        return block.data
    if isinstance(block, EmbeddedResource) and isinstance(block.resource, BlobResourceContents):
        return block.resource.blob
    return ""


def _adds(structured: Any, texts: list[str]) -> bool:
    """Whether structured content is more than the one text, which servers wrap as `{"result": …}`."""
    if structured is None:
        return False
    try:
        as_json = json.dumps(structured, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    text = "\n".join(texts)
    return structured != {"result": text} and as_json != f'{{"result": {text}}}'
