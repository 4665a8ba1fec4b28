// Signs an example envelope while it is typed. The secret stays in this page: it is not stored and not sent.
import { inHub } from "./addresses.js";
import { addSender, canSign, readKey, signBody, signPayload } from "./agnt_signing.js";
import { isObject, parseJson, writeCanonical, writeText } from "./canonical_json.js";
import { shell } from "./literals.js";

const SETTLED_AFTER_MS = 200;
const PROTOCOL = "openclaw/a2a/v1";
const NO_CRYPTO = "This browser signs only on pages of https or of this computer. The canonical form is right all the same.";
const NAMES = /^[A-Za-z0-9_.:-]{1,128}$/;
const field = Object.fromEntries(
  ["secret", "sender", "to", "intent", "payload", "at", "compare"].map((id) => [id, document.getElementById(id)]),
);
const place = Object.fromEntries(
  ["canonical", "signature", "envelope", "curl", "said"].map((id) => [id, document.getElementById(id)]),
);
const examples = JSON.parse(document.getElementById("examples").textContent);
const form = document.getElementById("sign");
let newest = 0;
let timer = 0;

class Refused extends Error {
  constructor(id, message) {
    super(message);
    this.id = id;
  }
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(show, SETTLED_AFTER_MS);
});
field.intent.addEventListener("change", () => {
  field.payload.value = examples[field.intent.value];
  show();
});
document.getElementById("now").addEventListener("click", () => {
  field.at.value = Math.floor(Date.now() / 1000);
  show();
});
show();

async function show() {
  const number = ++newest;
  for (const one of Object.values(field)) one.removeAttribute("aria-invalid");
  const shown = await sign().catch((failure) => {
    if (!(failure instanceof Refused)) throw failure;
    field[failure.id].setAttribute("aria-invalid", "true");
    return { said: failure.message };
  });
  if (number !== newest) return; // the visitor has typed more since
  for (const [id, element] of Object.entries(place)) element.textContent = shown[id] ?? "";
}

async function sign() {
  const { payload, at_s, sender, to } = read();
  const unsigned = addSender(payload, sender, at_s);
  const canonical = write(unsigned);
  if (!field.secret.value) throw new Refused("secret", "Give a secret.");
  if (!canSign()) return { canonical, said: NO_CRYPTO };
  const key = readKey(field.secret.value);
  const signature = await signPayload(unsigned, key);
  const envelope = writeEnvelope({ sender, to, at_s, payload: { ...unsigned, _sig: signature } });
  const header = await signBody(envelope, at_s, key);
  return { canonical, signature, envelope, curl: writeCurl(envelope, header), said: describe(canonical, key, signature) };
}

function read() {
  for (const id of ["sender", "to"]) {
    if (!NAMES.test(field[id].value)) throw new Refused(id, "A name has 1 to 128 letters, digits and _ . : -");
  }
  if (!/^\d{1,12}$/.test(field.at.value)) throw new Refused("at", "The time is a whole number of seconds since 1970.");
  const payload = readPayload();
  return { payload, at_s: Number(field.at.value), sender: field.sender.value, to: field.to.value };
}

function readPayload() {
  let payload;
  try {
    payload = parseJson(field.payload.value);
  } catch (failure) {
    throw new Refused("payload", `The payload is no JSON: ${failure.message}`);
  }
  if (!isObject(payload)) throw new Refused("payload", "The payload is an object: {…}");
  return payload;
}

function write(unsigned) {
  try {
    return writeCanonical(unsigned);
  } catch (failure) {
    if (failure instanceof RangeError) throw new Refused("payload", `Not a number in JSON: ${failure.message}.`);
    throw failure;
  }
}

// A line for each field.
function writeEnvelope({ sender, to, at_s, payload }) {
  const timestamp = new Date(at_s * 1000).toISOString();
  const fields = { protocol: PROTOCOL, from: sender, to, intent: field.intent.value, payload, ttl_ms: 5000, timestamp };
  const lines = Object.entries(fields).map(([name, value]) => `  ${writeText(name)}: ${writeCanonical(value)}`);
  return `{\n${lines.join(",\n")}\n}`;
}

function writeCurl(envelope, header) {
  const address = new URL(inHub("/a2a/v1"), location.href).href;
  return [
    `curl -sS ${shell(address)}`,
    '-H "Authorization: Bearer $AGNT_KEY"',
    "-H 'Content-Type: application/json'",
    `-H ${shell(`X-A2A-Envelope-Signature: ${header}`)}`,
    `--data-binary ${shell(envelope)}`,
  ].join(" \\\n  ");
}

function describe(canonical, key, signature) {
  const read_as = key.length === 32 && /^[0-9a-f]{64}$/.test(field.secret.value) ? "64 hex digits" : "UTF-8";
  const said = `Signed ${canonical.length} bytes with a key of ${key.length} bytes, read as ${read_as}.`;
  const compared = field.compare.value.trim();
  if (!compared) return said;
  return `${said} ${compared === signature ? "Your signature is the same." : "Your signature is another one."}`;
}
