// Signs the vectors of vectors.json with no code of ours, and prints the signatures; then signs a payload whose
// numbers JavaScript writes in another way than Python.
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));

function codePoints(text) {
  return [...text].map((char) => char.codePointAt(0));
}

function compareCodePoints(left, right) {
  const [a, b] = [codePoints(left), codePoints(right)];
  const at = a.findIndex((point, index) => point !== b[index]);
  return at === -1 ? a.length - b.length : a[at] - (b[at] ?? -1);
}

function writeText(text) {
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, escape);
}

function writeCanonical(value) {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join(",")}]`;
  if (typeof value === "string") return writeText(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort(compareCodePoints);
  return `{${keys.map((key) => `${writeText(key)}:${writeCanonical(value[key])}`).join(",")}}`;
}

function sign(key, text) {
  return createHmac("sha256", key).update(text).digest("hex");
}

function addSender(payload, sender, ts) {
  const { _sig, ...unsigned } = payload;
  return { ...unsigned, _from: sender, _ts: ts };
}

const signed = vectors.map(({ key, sender, ts, payload, canonical }) => {
  const secret = Buffer.from(key, "hex");
  const own = writeCanonical(addSender(JSON.parse(payload), sender, ts));
  return { own, ownSig: sign(secret, own), sig: sign(secret, canonical) };
});

const numbers = addSender({ small: 1e-7, large: 1e16, whole: 7.0, list: [1e21, -0, 0.5] }, "js_agent", 1775988123);
const _sig = sign("test-signing-key-0001", writeCanonical(numbers));
const body = JSON.stringify({ from: "js_agent", intent: "network.ping", payload: { ...numbers, _sig } });
console.log(JSON.stringify({ signed, body }));
