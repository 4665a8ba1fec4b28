// The artifacts of an answer beside its reply, each once by its id. What agents made is shown by textContent.
import { isReply } from "./dialects.js";

const MAX_CHARS = 20_000;

export class Artifacts {
  #bodies = new Map();

  constructor(list) {
    this.list = list;
  }

  get isEmpty() {
    return this.#bodies.size === 0;
  }

  clear() {
    this.#bodies.clear();
    this.list.replaceChildren();
  }

  // Show those of a sight; gives the ids that are new.
  see({ artifacts = [], appends = false }) {
    const made = artifacts.filter(({ artifactId }) => !isReply(artifactId));
    const fresh = made.map(({ artifactId }) => artifactId).filter((id) => !this.#bodies.has(id));
    for (const { artifactId, name, parts = [] } of made) {
      const body = this.#bodies.get(artifactId) ?? this.#begin(artifactId, name);
      const before = appends ? body.textContent : "";
      body.textContent = (before + parts.map(describePart).join("")).slice(0, MAX_CHARS);
    }
    return fresh;
  }

  #begin(artifactId, name) {
    const [line, title, body] = ["li", "b", "span"].map((kind) => document.createElement(kind));
    title.textContent = name || artifactId;
    body.className = "said";
    line.append(title, " ", body);
    this.list.append(line);
    this.#bodies.set(artifactId, body);
    return body;
  }
}

// A part in version 1.0, or one of text or data in 0.3, which has no files here.
function describePart(part) {
  if (part.text !== undefined) return part.text;
  if (part.data !== undefined) return `${JSON.stringify(part.data, null, 2)}\n`;
  const { filename = "file", mediaType, raw, url } = part;
  const source = raw === undefined ? url : `${Math.floor((raw.replace(/=+$/, "").length * 3) / 4)} bytes`;
  return `${[filename, mediaType, source].filter(Boolean).join(", ")}\n`;
}
