// Signs the vectors of vectors.json with no code of the hub, and prints the signatures; then signs a payload whose
// numbers JavaScript writes in another way than Python.
import { readFileSync } from "node:fs";
import { addSender, sign, writeCanonical } from "./foreign/agnt.mjs";

const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
const signed = vectors.map(({ key, sender, ts, payload, canonical }) => {
  const secret = Buffer.from(key, "hex");
  const own = writeCanonical(addSender(JSON.parse(payload), sender, ts));
  return { own, ownSig: sign(secret, own), sig: sign(secret, canonical) };
});

const numbers = addSender({ small: 1e-7, large: 1e16, whole: 7.0, list: [1e21, -0, 0.5] }, "js_agent", 1775988123);
const _sig = sign("test-signing-key-0001", writeCanonical(numbers));
const body = JSON.stringify({ from: "js_agent", intent: "network.ping", payload: { ...numbers, _sig } });
console.log(JSON.stringify({ signed, body }));
