// The official TypeScript client of MCP lists the tools and calls some. Read from standard input like `client.mjs`:
// `node --input-type=module - URL TOKEN CALLS <calls.mjs`. CALLS: a JSON array of [step, tool, arguments].
// Prints a JSON line for each thing seen: {"step": what was done, "value": what came}.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url, token, calls] = process.argv.slice(2);
const say = (step, value) => console.log(JSON.stringify({ step, value }));

const client = new Client({ name: "a test", version: "1" });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
say("tools", (await client.listTools()).tools.map((tool) => tool.name));
for (const [step, name, args] of JSON.parse(calls)) say(step, await client.callTool({ name, arguments: args }));
await client.close();
say("end", null);
