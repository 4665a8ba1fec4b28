const WebSocket = require('ws');
class A2AGateway {
constructor(port = 18789) {
this.port = port;
this.wss = new WebSocket.Server({ port });
this.clients = new Map();
this.agents = new Map();
this.sessions = new Map();
this.initialize();
}
initialize() {
this.wss.on('connection', (ws) => this.handleConnection(ws));
console.log(`Gateway listening on ws://127.0.0.1:${this.port}`);
}
handleConnection(ws) {
const clientId = `client-${Date.now()}-${Math.random().toString(36).substr(2, 9)}`;
this.clients.set(clientId, ws);
ws.on('message', (data) => {
try {
const message = JSON.parse(data);
this.routeMessage(clientId, message);
} catch (error) {
this.sendError(ws, 'INVALID_JSON', error.message);
}
});
ws.on('close', () => {
this.clients.delete(clientId);
});
}
routeMessage(clientId, message) {
switch (message.type) {
case 'handshake':
this.handleHandshake(clientId, message);
break;
case 'message':
this.handleAgentMessage(clientId, message);
break;
case 'discovery':
this.handleDiscovery(clientId, message);
break;
case 'subscribe':
this.handleSubscribe(clientId, message);
break;
default:
this.sendError(this.clients.get(clientId), 'UNKNOWN_TYPE', `Unknown message type: ${message.type}`);
}
}
handleHandshake(clientId, message) {
const ws = this.clients.get(clientId);
const response = {
type: 'handshake',
content: {
action: 'acknowledge',
clientId: clientId,
availableAgents: Array.from(this.agents.keys()),
protocolVersion: '1.0.0'
}
};
ws.send(JSON.stringify(response));
}
handleAgentMessage(clientId, message) {
const targetAgent = message.agent;
if (!targetAgent || !this.agents.has(targetAgent)) {
this.sendError(this.clients.get(clientId), 'AGENT_NOT_FOUND', `Agent not found: ${targetAgent}`);
return;
}
// Route to appropriate agent handler
const agentHandler = this.agents.get(targetAgent);
agentHandler.process(message);
}
handleDiscovery(clientId, message) {
const ws = this.clients.get(clientId);
const response = {
type: 'discovery',
content: {
agents: Array.from(this.agents.entries()).map(([name, handler]) => ({
name,
role: handler.role,
status: handler.status,
workspace: handler.workspace
}))
}
};
ws.send(JSON.stringify(response));
}
handleSubscribe(clientId, message) {
const ws = this.clients.get(clientId);
// Implement subscription logic
ws.send(JSON.stringify({
type: 'subscribe',
content: {
channel: message.content.channel,
status: 'subscribed'
}
}));
}
sendError(ws, code, message) {
ws.send(JSON.stringify({
type: 'error',
content: {
error: code,
message: message
}
}));
}
}
// Start gateway
const gateway = new A2AGateway(18789);
