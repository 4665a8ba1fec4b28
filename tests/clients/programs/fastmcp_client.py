"""Asks an agent by fastmcp's client: `python fastmcp_client.py URL TOKEN HANDLE` prints one JSON object."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

url, token, handle = sys.argv[1:]


async def main():
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    async with Client(transport) as client:
        tools = [tool.name for tool in await client.list_tools()]
        answer = await client.call_tool("ask_agent", {"handle": handle, "message": "hello"})
        sys.stdout.write(json.dumps({"tools": tools, "answer": answer.content[0].text}))


asyncio.run(main())
