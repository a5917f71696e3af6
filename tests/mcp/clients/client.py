"""Lists the tools of an MCP server, calls one tool, and calls a tool that does not exist.

Usage: client.py TARGET CALL, both in JSON.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main() -> None:
    target, call = (json.loads(text) for text in sys.argv[1:3])
    server = target["url"] if "url" in target else StdioServerParameters(**target)
    async with Client(server, mode=call["mode"]) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(call["tool"], call["arguments"])
        try:
            await client.call_tool("no-such-tool", {})
            refused = "not refused"
        except MCPError as error:
            refused = error.error.message
        print(
            json.dumps(
                {
                    "server": client.server_info.name,
                    "revision": client.protocol_version,
                    "tools": sorted(tool.name for tool in tools),
                    "text": result.content[0].text,
                    "refused": refused,
                }
            )
        )


asyncio.run(main())
