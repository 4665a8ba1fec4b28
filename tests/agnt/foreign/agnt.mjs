// AGNT's envelopes and signatures, written from the protocol's description alone: no code of the hub is used here.
import { createHmac, timingSafeEqual } from "node:crypto";

export const PROTOCOL = "openclaw/a2a/v1";
const MAX_AGE_S = 300;
const MAX_AHEAD_S = 60;

// The bytes of a secret that the hub shows in hexadecimal digits.
export function readSecret(digits) {
  return Buffer.from(digits, "hex");
}

// JSON with sorted keys, no spaces and only ASCII: what is signed.
export function writeCanonical(value) {
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join(",")}]`;
  if (typeof value === "string") return writeText(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort(compareCodePoints);
  return `{${keys.map((key) => `${writeText(key)}:${writeCanonical(value[key])}`).join(",")}}`;
}

export function sign(secret, text) {
  return createHmac("sha256", secret).update(text).digest("hex");
}

// The payload with its sender and time, as it is signed.
export function addSender(payload, sender, ts) {
  const { _sig, ...unsigned } = payload;
  return { ...unsigned, _from: sender, _ts: ts };
}

export function signPayload(payload, secret, sender, ts = nowS()) {
  const whole = addSender(payload, sender, ts);
  return { ...whole, _sig: sign(secret, writeCanonical(whole)) };
}

export function verifyPayload(payload, secret, sender) {
  const { _sig, ...unsigned } = payload;
  const { _ts, _from } = unsigned;
  if (!Number.isInteger(_ts) || _from !== sender || typeof _sig !== "string") return false;
  const age = nowS() - _ts;
  if (age > MAX_AGE_S || age < -MAX_AHEAD_S) return false;
  const [given, wanted] = [Buffer.from(_sig, "utf8"), Buffer.from(sign(secret, writeCanonical(unsigned)), "utf8")];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function nowS() {
  return Math.floor(Date.now() / 1000);
}

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
