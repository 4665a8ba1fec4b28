// Writes one request in four forms. The visitor's text is quoted by the rules of each language.
import { ascii, literal, pythonJson, pythonLiteral, shell } from "./literals.js";

const PLACE = "A2A_TOKEN";

export function asHttp(request, hub) {
  const { host, pathname } = new URL(hub);
  const headers = Object.entries({ Host: host, ...request.headers });
  const cookie = request.credentials === "omit" ? [] : [["Cookie", "cw_session=…"]];
  const head = [...headers, ...cookie].map(([name, value]) => `${name}: ${value}`);
  return [`${request.method} ${pathname.replace(/\/$/, "")}${request.url} HTTP/1.1`, ...head, "", request.body ?? ""].join("\n").trimEnd();
}

export function asCurl(request, hub, token) {
  const headers = Object.entries(request.headers ?? {}).map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`);
  const bearer = token ? shell(`Authorization: Bearer ${token}`) : `"Authorization: Bearer $${PLACE}"`;
  const lines = [
    `curl -sN${request.method === "GET" ? "" : ` -X ${request.method}`} ${shell(hub + request.url)}`,
    ...(request.credentials === "omit" ? [] : [`-H ${bearer}`]),
    ...headers,
    ...(request.body === undefined ? [] : [`--data-binary ${shell(request.body)}`]),
  ];
  return lines.join(" \\\n  ");
}

export function asPython(request, hub, token) {
  const bearer = token ? pythonLiteral(`Bearer ${token}`) : `"Bearer " + os.environ["${PLACE}"]`;
  const headers = Object.entries(request.headers ?? {}).map(([name, value]) => `    ${pythonLiteral(name)}: ${pythonLiteral(value)},`);
  const needs = !token && request.credentials !== "omit";
  return [
    ...(needs ? ["import os"] : []),
    "import urllib.request",
    "",
    "headers = {",
    ...(request.credentials === "omit" ? [] : [`    "Authorization": ${bearer},`]),
    ...headers,
    "}",
    `body = ${request.body === undefined ? "None" : `${pythonJson(request.body)}.encode()`}`,
    `request = urllib.request.Request(${pythonLiteral(hub + request.url)}, data=body, headers=headers)`,
    "with urllib.request.urlopen(request) as answer:",
    "    for line in answer:",
    '        print(line.decode(), end="")',
  ].join("\n");
}

export function asTypeScript(request, hub, token) {
  const bearer = token ? literal(`Bearer ${token}`) : `\`Bearer \${process.env.${PLACE}}\``;
  const headers = Object.entries(request.headers ?? {}).map(([name, value]) => `    ${literal(name)}: ${literal(value)},`);
  return [
    `const answer = await fetch(${literal(hub + request.url)}, {`,
    `  method: ${literal(request.method)},`,
    "  headers: {",
    ...(request.credentials === "omit" ? [] : [`    Authorization: ${bearer},`]),
    ...headers,
    "  },",
    ...(request.body === undefined ? [] : [`  body: ${typescriptBody(request.body)},`]),
    "});",
    "const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();",
    "for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {",
    "  console.log(piece.value);",
    "}",
  ].join("\n");
}

function typescriptBody(body) {
  try {
    JSON.parse(body);
  } catch {
    return literal(body); // a deliberate mistake: not JSON
  }
  return `JSON.stringify(${ascii(body).replaceAll("\n", "\n  ")})`;
}
