"""The resources of MCP: the artifacts of the caller's tasks."""

import base64
from dataclasses import dataclass

import mcp_types as types
import msgspec
from mcp.shared.exceptions import MCPError
from msgspec import UNSET

from a2a_bridge.wire.task import Artifact, Task
from agents.transcript.pieces import Part
from mcp_server.service.calls import ToolCaller, ToolCalls
from mcp_server.service.catalog import URI_TEMPLATE, address_artifact, find_artifact, load_latest_tasks
from mcp_server.surface.endpoint import CALLER_KEY
from mcp_server.surface.tool_call import Context, public_errors, read_cursor

NOT_FOUND_BEFORE_2026 = -32002
MAX_READ_BYTES = 2_097_152  # of one artifact: agents may send more parts in each turn of a task
TEXT, JSON, FILE, ADDRESSES = "text/plain", "application/json", "application/octet-stream", "text/uri-list"

Contents = types.TextResourceContents | types.BlobResourceContents


@dataclass(frozen=True, slots=True)
class ResourceHandlers:
    """The SDK's requests about resources."""

    calls: ToolCalls

    async def list(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The artifacts of the caller's latest tasks, the newest first."""
        caller: ToolCaller = context.request.scope[CALLER_KEY]
        with public_errors():
            tasks, next_cursor = await load_latest_tasks(self.calls, caller, read_cursor(params))
        shown = [_show(task, artifact) for task in tasks for artifact in task.artifacts if artifact.parts]
        return types.ListResourcesResult(resources=shown, next_cursor=next_cursor or None)

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The form of all addresses."""
        template = types.ResourceTemplate(
            name="artifact",
            title="Artifact of a task",
            uri_template=URI_TEMPLATE,
            description="What an agent made for one of your questions; its reply is an artifact, too.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The parts of an artifact, in their order."""
        caller: ToolCaller = context.request.scope[CALLER_KEY]
        with public_errors():
            found = await find_artifact(self.calls, caller, params.uri)
        if found is None:
            is_modern = context.protocol_version in types.version.MODERN_PROTOCOL_VERSIONS
            code = types.INVALID_PARAMS if is_modern else NOT_FOUND_BEFORE_2026
            text = "no such resource: the artifact is absent or has expired"
            raise MCPError(code=code, message=text, data={"uri": params.uri})
        _, artifact = found
        contents = [_read_part(params.uri, part) for part in artifact.parts]
        if sum(map(_size_of, contents)) > MAX_READ_BYTES:
            text = f"the artifact is over {MAX_READ_BYTES} bytes: read the task over A2A, or on its page"
            raise MCPError(code=types.INVALID_REQUEST, message=text, data={"uri": params.uri})
        return types.ReadResourceResult(contents=contents)


def _show(task: Task, artifact: Artifact) -> types.Resource:
    """An artifact in a list. The media type is that of its parts, if they have one."""
    media_types = {_media_type_of(part) for part in artifact.parts}
    named = artifact.name or next((part.filename for part in artifact.parts if part.filename), "")
    return types.Resource(
        uri=address_artifact(task, artifact),
        name=named or artifact.id,
        title=f"{named or artifact.id} by @{task.handle}",
        description=artifact.description or None,
        mime_type=media_types.pop() if len(media_types) == 1 else None,
    )


def _media_type_of(part: Part) -> str:
    if isinstance(part.url, str):
        return ADDRESSES
    if isinstance(part.raw, str):
        return part.media_type or FILE
    return part.media_type or (JSON if part.data is not UNSET else TEXT)


def _read_part(uri: str, part: Part) -> Contents:
    """A part as contents; a file that is text as text, so that a model can read it."""
    media_type = _media_type_of(part)
    if isinstance(part.raw, str):
        text = _decode_text(part.raw) if media_type.startswith("text/") or media_type == JSON else None
        if text is None:
            return types.BlobResourceContents(uri=uri, blob=part.raw, mime_type=media_type)
    elif part.data is not UNSET:
        text = msgspec.json.encode(part.data).decode()
    else:
        text = part.url if isinstance(part.url, str) else part.text or ""
    return types.TextResourceContents(uri=uri, text=text, mime_type=media_type)


def _decode_text(raw: str) -> str | None:
    try:
        return base64.b64decode(raw).decode()
    except ValueError:
        return None


def _size_of(contents: Contents) -> int:
    if isinstance(contents, types.BlobResourceContents):
        return len(contents.blob)
    return len(contents.text.encode())
