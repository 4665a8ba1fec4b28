// Code that asks the same question by the official SDKs, which find the agent by its card. `what`: {hub, handle, text, token}.
import { endpoint } from "./a2a.js";
import { literal, pythonLiteral } from "./literals.js";

const PLACE = "A2A_TOKEN";

export const SDKS = {
  "v1-0": { "python-sdk": python1, "js-sdk": js1 },
  "v0-3": { "python-sdk": python03, "js-sdk": js03 },
};

const base = ({ hub, handle }) => `${hub}${endpoint(handle)}/`; // with the last slash: the JavaScript SDK drops what follows it

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
    "from a2a.helpers import get_message_text, get_stream_response_text, new_text_message",
    "from a2a.types import Role, SendMessageRequest, TaskState",
    "",
    `AGENT = ${pythonLiteral(base(what))}`,
    "",
    "",
    "async def main():",
    `    async with ${signedPython(what.token)} as signed:`,
    "        client = await create_client(AGENT, ClientConfig(httpx_client=signed))",
    `        question = new_text_message(${pythonLiteral(what.text)}, role=Role.ROLE_USER)`,
    "        shown = set()",
    "        async for event in client.send_message(SendMessageRequest(message=question)):",
    '            if event.HasField("artifact_update"):',
    "                update = event.artifact_update",
    "                if update.append or update.artifact.artifact_id not in shown:  # else all of it once more",
    "                    shown.add(update.artifact.artifact_id)",
    '                    print(get_stream_response_text(event), end="", flush=True)',
    "            else:",
    '                status = event.status_update.status if event.HasField("status_update") else event.task.status',
    "        if status.state != TaskState.TASK_STATE_COMPLETED:",
    '            print(f"\\n{TaskState.Name(status.state)}: {get_message_text(status.message)}")',
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
    "                return print(get_message_text(event))",
    "            task, update = event",
    '            if update and update.kind == "artifact-update":',
    '                print(get_artifact_text(update.artifact), end="", flush=True)',
    "        status = task.status",
    '        if status.state != "completed":',
    '            print(f"\\n{status.state.value}: {get_message_text(status.message) if status.message else \'\'}")',
    "",
    "",
    "asyncio.run(main())",
  ].join("\n");
}

function js1(what) {
  return [
    "// npm install @a2a-js/sdk@1",
    'import { randomUUID } from "node:crypto";',
    'import { SendMessageRequest, TaskState, taskStateToJSON } from "@a2a-js/sdk";',
    'import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory } from "@a2a-js/sdk/client";',
    "",
    ...signedJs(what.token),
    "",
    `const client = await factory.createFromUrl(${literal(base(what))});`,
    `const message = { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: ${literal(what.text)} }] };`,
    "const say = (parts) => {",
    '  for (const { content } of parts ?? []) if (content?.$case === "text") process.stdout.write(content.value);',
    "};",
    "let status;",
    "const shown = new Set();",
    "for await (const { payload } of client.sendMessageStream(SendMessageRequest.fromJSON({ message }))) {",
    '  if (payload?.$case === "artifactUpdate") {',
    "    const { append, artifact } = payload.value;",
    "    if (append || !shown.has(artifact?.artifactId)) say(artifact?.parts); // else it is all of it once more",
    "    shown.add(artifact?.artifactId);",
    "  } else status = payload?.value.status ?? status;",
    "}",
    "if (status?.state !== TaskState.TASK_STATE_COMPLETED) {",
    "  process.stdout.write(`\\n${taskStateToJSON(status?.state)}: `);",
    "  say(status?.message?.parts);",
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
    "const say = (parts) => {",
    '  for (const part of parts ?? []) if (part.kind === "text") process.stdout.write(part.text);',
    "};",
    "let status;",
    "for await (const event of client.sendMessageStream({ message })) {",
    '  say(event.kind === "artifact-update" ? event.artifact.parts : event.parts);',
    "  status = event.status ?? status;",
    "}",
    'if (status && status.state !== "completed") {',
    "  process.stdout.write(`\\n${status.state}: `);",
    "  say(status.message?.parts);",
    "}",
  ].join("\n");
}
