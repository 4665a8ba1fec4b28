// The same question by the official SDKs, which find the agent by its card. `what` is {hub, handle, text, token}.
import { endpoint } from "./a2a.js";
import { literal, pythonLiteral } from "./literals.js";

const PLACE = "A2A_TOKEN";

export const SDKS = {
  "v1-0": { "python-sdk": python1, "js-sdk": js1 },
  "v0-3": { "python-sdk": python03, "js-sdk": js03 },
};

const base = ({ hub, handle }) => `${hub}${endpoint(handle)}/`; // with the slash: the JavaScript SDK drops what comes after the last one

const signedPython = (token) =>
  `httpx.AsyncClient(headers={"Authorization": ${token ? pythonLiteral(`Bearer ${token}`) : `"Bearer " + os.environ["${PLACE}"]`}})`;

const signedJs = (token) => [
  `const headers = { Authorization: ${token ? literal(`Bearer ${token}`) : `\`Bearer \${process.env.${PLACE}}\``} };`,
  "const fetchImpl = (url, options = {}) => fetch(url, { ...options, headers: { ...options.headers, ...headers } });",
  "const transports = [new JsonRpcTransportFactory({ fetchImpl })];",
  "const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports }));",
];

function python1(what) {
  return [
    "# pip install 'a2a-sdk>=1,<2'",
    "import asyncio",
    ...(what.token ? [] : ["import os"]),
    "",
    "import httpx",
    "from a2a.client import ClientConfig, create_client",
    "from a2a.helpers import get_stream_response_text, new_text_message",
    "from a2a.types import Role, SendMessageRequest",
    "",
    `AGENT = ${pythonLiteral(base(what))}`,
    "",
    "",
    "async def main():",
    `    async with ${signedPython(what.token)} as signed:`,
    "        client = await create_client(AGENT, ClientConfig(httpx_client=signed))",
    `        question = new_text_message(${pythonLiteral(what.text)}, role=Role.ROLE_USER)`,
    "        async for event in client.send_message(SendMessageRequest(message=question)):",
    '            if event.HasField("artifact_update"):',
    '                print(get_stream_response_text(event), end="", flush=True)',
    "",
    "",
    "asyncio.run(main())",
  ].join("\n");
}

function python03(what) {
  return [
    "# pip install 'a2a-sdk>=0.3,<0.4'",
    "import asyncio",
    ...(what.token ? [] : ["import os"]),
    "",
    "import httpx",
    "from a2a.client import ClientConfig, ClientFactory, create_text_message_object",
    "from a2a.types import Message",
    "from a2a.utils import get_artifact_text, get_message_text",
    "",
    `AGENT = ${pythonLiteral(base(what))}`,
    "",
    "",
    "async def main():",
    `    async with ${signedPython(what.token)} as signed:`,
    "        client = await ClientFactory.connect(AGENT, ClientConfig(httpx_client=signed))",
    `        question = create_text_message_object(content=${pythonLiteral(what.text)})`,
    "        async for event in client.send_message(question):",
    "            if isinstance(event, Message):",
    "                print(get_message_text(event))",
    '            elif event[1] and event[1].kind == "artifact-update":',
    '                print(get_artifact_text(event[1].artifact), end="", flush=True)',
    "",
    "",
    "asyncio.run(main())",
  ].join("\n");
}

function js1(what) {
  return [
    "// npm install @a2a-js/sdk@1",
    'import { randomUUID } from "node:crypto";',
    'import { SendMessageRequest } from "@a2a-js/sdk";',
    'import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from "@a2a-js/sdk/client";',
    "",
    ...signedJs(what.token),
    "",
    `const client = await factory.createFromUrl(${literal(base(what))});`,
    `const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: ${literal(what.text)} }] };`,
    "for await (const { payload } of client.sendMessageStream(SendMessageRequest.fromJSON({ message }))) {",
    '  if (payload?.$case !== "artifactUpdate") continue;',
    "  for (const { content } of payload.value.artifact?.parts ?? []) {",
    '    if (content?.$case === "text") process.stdout.write(content.value);',
    "  }",
    "}",
  ].join("\n");
}

function js03(what) {
  return [
    "// npm install @a2a-js/sdk@0.3",
    'import { randomUUID } from "node:crypto";',
    'import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from "@a2a-js/sdk/client";',
    "",
    ...signedJs(what.token),
    "",
    `const client = await factory.createFromUrl(${literal(base(what))});`,
    `const parts = [{ kind: "text", text: ${literal(what.text)} }];`,
    'const message = { kind: "message", messageId: randomUUID(), role: "user", parts };',
    "for await (const event of client.sendMessageStream({ message })) {",
    '  const said = event.kind === "message" ? event.parts : event.kind === "artifact-update" ? event.artifact.parts : [];',
    '  for (const part of said) if (part.kind === "text") process.stdout.write(part.text);',
    "}",
  ].join("\n");
}
