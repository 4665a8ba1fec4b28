"""An MCP server on the official SDK, with one tool for each kind of result: `python tool_server.py`."""

import base64
import sys
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp_types import BlobResourceContents, CallToolResult, EmbeddedResource, ResourceLink, TextContent

PNG = b"\x89PNG\r\n\x1a\n"

server = MCPServer("tools")


@server.tool(title="Shout it", description="Says a text in capitals.\n\nAs often as wanted.")
async def shout(text: str, context: Context, times: int = 1) -> str:
    await context.report_progress(1, 2, "breathing in")
    sys.stderr.write(f"shouting\x1b[31m {'x' * 600}\n")
    return " ".join([text.upper()] * times)


@server.tool()
def add(first: int, second: int) -> int:
    return first + second


@server.tool()
def show() -> Any:
    file = BlobResourceContents(uri="file:///tmp/a.bin", blob=base64.b64encode(b"ab").decode())
    return CallToolResult(
        content=[
            TextContent(text="here:"),
            Image(data=PNG, format="png").to_image_content(),
            EmbeddedResource(resource=file),
            ResourceLink(name="page", uri="https://example.org/page", mime_type="text/html"),
            ResourceLink(name="notes", uri="memo://1"),
        ],
        structured_content={"count": 4},
    )


@server.tool()
def refuse() -> str:
    raise ValueError("not today")


if __name__ == "__main__":
    server.run()
