// Makes the signatures of AGNT in the browser. No key is stored or sent.
import { writeCanonical } from "./canonical_json.js";

const IS_HEX = /^[0-9a-f]{64}$/;
const encoder = new TextEncoder();

// The bytes of a secret, as the hub reads it: 64 hex digits are 32 bytes, everything else is UTF-8.
export function readKey(secret) {
  if (!IS_HEX.test(secret)) return encoder.encode(secret);
  return Uint8Array.from(secret.match(/../g), (pair) => Number.parseInt(pair, 16));
}

// The payload to sign: with this sender and this time (Unix seconds), which replace the payload's own.
export function addSender(payload, sender, at_s) {
  const { _sig, ...unsigned } = payload;
  return { ...unsigned, _from: sender, _ts: at_s };
}

export async function signPayload(payload, key) {
  return sign(writeCanonical(payload), key);
}

// The value of the header X-A2A-Envelope-Signature.
export async function signBody(body, at_s, key) {
  return `ts=${at_s},v1=${await sign(`${at_s}.${body}`, key)}`;
}

// Browsers offer `crypto.subtle` only to pages of https and of localhost.
export const canSign = () => Boolean(globalThis.crypto?.subtle);

async function sign(text, key) {
  const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", imported, encoder.encode(text));
  return [...new Uint8Array(signature)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
