// Loaded before the conformance suite: the suite cannot send a token, and needs a function that node has since 22.
import { subscribe } from "node:diagnostics_channel";
import http from "node:http";
import { register } from "node:module";

const { HUB_URL, HUB_TOKEN } = process.env;
const credentials = ["authorization", `Bearer ${HUB_TOKEN}`];

// What `fetch` and `undici` are about to send.
subscribe("undici:request:create", ({ request }) => {
  if (request.origin === HUB_URL) request.addHeader(...credentials);
});

const sendRequest = http.request;
http.request = (...options) => {
  const request = sendRequest(...options);
  if (`${request.protocol}//${request.getHeader("host")}` === HUB_URL) request.setHeader(...credentials);
  return request;
};

// The suite imports `globSync` for subcommands that tests do not run.
const files = `import fs from "node:fs";
export * from "node:fs";
export default fs;
export const globSync = fs.globSync;`;
const asUrl = (text) => `data:text/javascript,${encodeURIComponent(text)}`;
register(asUrl(`export const resolve = (name, context, next) =>
  name === "fs" ? { url: ${JSON.stringify(asUrl(files))}, shortCircuit: true } : next(name, context);`));
