// What the official TypeScript client of MCP sees. Read from standard input, in its environment's folder:
// `node --input-type=module - URL TOKEN HANDLE <client.mjs`. Prints a JSON line for each thing seen: {"step": what was
// done, "value": what came}.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, token, handle] = process.argv.slice(2);
const say = (step, value) => console.log(JSON.stringify({ step, value }));

const client = new Client({ name: "a test", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  say("elicited", params.message);
  return { action: "accept", content: { answer: "the second" } };
});
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
say("server", { name: client.getServerVersion().name, capabilities: client.getServerCapabilities() });

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

say("tools", (await client.listTools()).tools.map((tool) => tool.name));

const onprogress = (progress) => say("progress", progress.message);
say("answer", await call("ask_agent", { handle, message: "say one | say , two" }, { onprogress }));

say("asked back", await call("ask_agent", { handle, message: "ask which one?" }));

// The client gives up a question once the agent works on it; it cancels another by its task.
const held = { handle, message: "note begun | wait" };
const leaving = new AbortController();
const given_up = call("ask_agent", held, { signal: leaving.signal, onprogress: () => leaving.abort("no longer wanted") });
await given_up.catch((error) => say("gave up", String(error)));
const task = (await call("ask_agent", { handle, message: "wait", wait_s: 1 }))._meta["clawbridge/task_id"];
say("canceled", await call("cancel_task", { task_id: task }));
say("refused", await call("cancel_task", { task_id: task }));
await client.close();
say("end", null);
