// Shows the artifacts of an answer as they arrive, each id once: the artifact's name, then its parts.
import { isReply } from "./dialects.js";
import { inBytes, make } from "./elements.js";

const MAX_CHARS = 20_000;

export class Artifacts {
  #shown = new Map();
  #before;

  // `View`: shows parts in an element (`PartsAsText`, or `PartsView` of `parts.js`). `before`: the artifacts of an earlier
  // turn of the same task, which are not shown again unless they change.
  constructor(list, View, { before = null } = {}) {
    Object.assign(this, { list, View });
    this.#before = before?.parts ?? new Map();
  }

  get isEmpty() {
    return this.#shown.size === 0;
  }

  // The parts of each artifact of the task by the artifact's id, artifacts of earlier turns included.
  get parts() {
    return new Map([...this.#before, ...[...this.#shown].map(([id, { parts }]) => [id, parts])]);
  }

  // The texts of all artifacts that are shown.
  get text() {
    return [...this.#shown.values()].map(({ view }) => view.text).join("\n\n");
  }

  clear() {
    this.#shown.clear();
    this.list.replaceChildren();
  }

  finish() {
    for (const { view } of this.#shown.values()) view.finish();
  }

  setRaw(isRaw) {
    for (const { view } of this.#shown.values()) view.setRaw(isRaw);
  }

  // Show the artifacts of one result or event (`sightOf`); returns the ids of artifacts that were not shown before.
  see({ artifacts = [], appends = false }) {
    const fresh = [];
    for (const { artifactId, name, parts = [] } of artifacts.filter((one) => !isReply(one.artifactId))) {
      const known = this.#shown.get(artifactId)?.parts ?? this.#before.get(artifactId) ?? [];
      const whole = appends ? [...known, ...parts] : parts;
      if (!this.#shown.has(artifactId)) {
        if (this.#before.has(artifactId) && isSame(known, whole)) continue;
        this.#begin(artifactId, name);
        fresh.push(artifactId);
      }
      this.#show(this.#shown.get(artifactId), whole);
    }
    return fresh;
  }

  #show(one, parts) {
    one.parts = parts;
    one.view.show(parts);
  }

  #begin(artifactId, name) {
    const item = make("li", "artifact");
    const title = name || (this.View.showsIds ? artifactId : "");
    if (title) item.append(make("b", "", make("bdi", "", title)));
    const view = new this.View(item.appendChild(make("div")));
    this.list.append(item);
    this.#shown.set(artifactId, { view, parts: [] });
  }
}

const isSame = (some, others) => JSON.stringify(some) === JSON.stringify(others);

// Shows parts for developers: texts, data as JSON, and of a file its name, type and size or URL.
export class PartsAsText {
  static showsIds = true;

  constructor(element) {
    this.element = element;
    element.className = "said";
  }

  show(parts) {
    this.element.textContent = parts.map(describePart).join("").slice(0, MAX_CHARS);
  }
}

// The text for a part of A2A 1.0 or 0.3.
function describePart({ text, data, file, ...part }) {
  if (text !== undefined) return text;
  if (data !== undefined) return `${JSON.stringify(data, null, 2)}\n`;
  const of03 = file && { filename: file.name, mediaType: file.mimeType, raw: file.bytes, url: file.uri };
  const { filename = "file", mediaType, raw, url } = of03 ?? part;
  const source = raw === undefined ? url : inBytes(Math.floor((raw.replace(/=+$/, "").length * 3) / 4));
  return `${[filename, mediaType, source].filter(Boolean).join(", ")}\n`;
}
