// The acts of the prototype's own client for `python -m lab.prototype`: see the docstring there.
// Arguments: the folder of a checkout of the client, and the address of the recording proxy.
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const [, , checkout, proxy] = process.argv;
const library = require(path.resolve(checkout, 'agents/lib/agent-client.js'));

// The constructor of `AgentClient` makes folders at fixed places and opens a database: its methods need neither.
function makeAgent(agentId, gatewayClient) {
  const memoryDir = fs.mkdtempSync(path.join(os.tmpdir(), 'agent-client-'));
  return Object.assign(Object.create(library.prototype), { agentId, role: 'triad', memoryDir, gatewayClient });
}

function makeClient(agentId, query = `?agentId=${agentId}`) {
  const gatewayUrl = `${proxy}/${agentId}/a2a${query}`;
  return new library.GatewayClient({ agentId, gatewayUrl, heartbeatInterval: 3_600_000 }); // one as it connects
}

// Returns when the proxy has passed on every frame, and no further frame came for a while.
async function settle() {
  await fetch(`${proxy.replace('ws', 'http')}/settle`);
}

async function connect(client, options) {
  await client.connect(options);
  await settle();
}

async function disconnect(client) {
  await client.disconnect();
  await settle();
}

async function send(client, frame) {
  client.ws.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  await settle();
}

async function message(client, to, content) {
  client.sendMessage(to, content).catch(() => {});
  await settle();
}

function answer(client, asked, content) {
  const reply = { type: 'message', agent: asked.from, correlationId: asked.correlationId, content };
  client.ws.send(JSON.stringify({ ...reply, from: client.agentId, timestamp: new Date().toISOString() }));
}

async function main() {
  const steward = makeClient('steward');
  await connect(steward, { role: 'orchestrator', metadata: { version: '1' } });

  const alpha = makeClient('alpha');
  await connect(alpha, { enableHeartbeat: false });
  let answers = (asked) => answer(alpha, asked, { role: 'agent', content: 'done' });
  alpha.subscribeToMessages((asked) => answers(asked));

  await message(steward, 'alpha', 'a text');
  await message(steward, 'alpha', { task: 'an object' });
  await message(makeAgent('steward', steward), 'alpha', 'by AgentClient');

  // An answer by `AgentClient.sendResponse` is a message of its own, with another correlation id.
  const agent = makeAgent('alpha', alpha);
  answers = (asked) => agent.sendResponse(asked.from, 'done', asked.correlationId).catch(() => {});
  await message(steward, 'alpha', 'answered by sendResponse');

  // Content that is a bare text, and messages that name their recipient by `to`.
  answers = () => {};
  await send(steward, { type: 'message', agent: 'alpha', correlationId: 'msg_bare', content: 'bare' });
  await send(alpha, { type: 'message', agent: 'steward', correlationId: 'msg_bare', content: 'bare answer' });
  await send(steward, { type: 'message', to: 'alpha', content: { role: 'user', content: 'told' } });
  await send(steward, { type: 'message', to: 'alpha', content: 'told bare' });

  await message(steward, 'absent', 'no such agent');
  await send(steward, { type: 'message', agent: 'absent', content: 'without an id' });
  const beta = makeClient('beta');
  await connect(beta, { enableHeartbeat: false });
  await disconnect(beta);
  await message(steward, 'beta', 'for an agent that is offline');

  await send(steward, { type: 'ping' });
  await send(steward, { type: 'ping', heartbeat: { uptime: 1, lastHeartbeatSent: null } });
  await send(steward, { type: 'pong', timestamp: Date.now() });
  await send(steward, { type: 'discover' });
  await send(steward, { type: 'health' });
  await send(steward, { type: 'broadcast', content: { role: 'user', content: 'to all' }, correlationId: 'msg_all' });
  await send(steward, { type: 'broadcast', content: 'to all, bare' });

  await send(steward, { type: 'message', content: 'for none', correlationId: 'msg_none' });
  await send(steward, '{ no JSON');
  await send(steward, 'null');
  await send(steward, '[]');
  await send(steward, '"text"');
  await send(steward, {});
  await send(steward, { type: 'nonsense', correlationId: 'msg_nonsense' });
  await send(steward, { type: 'response', content: 'answers nothing', correlationId: 'msg_nothing' });

  // A client that reconnects is registered again, and sends and gets messages, also if it left without answering a
  // message.
  await disconnect(steward);
  await connect(steward, { role: 'orchestrator' });
  await message(steward, 'beta', 'after the reconnect');
  await send(steward, { type: 'register', agentId: 'steward', metadata: {} });
  await message(steward, 'alpha', 'not answered');
  await disconnect(alpha);
  await connect(alpha, { enableHeartbeat: true });
  await send(alpha, { type: 'discover' });
  await message(alpha, 'steward', 'after the reconnect');

  // Without a name in its address a client has the one that it registers.
  const nameless = makeClient('nameless', '');
  await connect(nameless, { enableHeartbeat: true });
  await send(nameless, { type: 'register' });
  await message(nameless, 'absent', 'no such agent');
  for (const client of [nameless, alpha, steward]) await disconnect(client);
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
