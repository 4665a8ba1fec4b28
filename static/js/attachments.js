// Files that go with a question: chosen, dropped or pasted. Text and JSON become parts of the message, as agents that read
// only text get them. Any other file that the agent's card lists is uploaded at once, and its part names the upload.
import { inHub } from "./addresses.js";
import { inBytes, make } from "./elements.js";

const MAX_FILES = 20;
const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain";
const SHOWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const NO_ANSWER = "the hub does not answer. Remove it, and attach it again.";

export class Attachments {
  #files = []; // {name, bytes, part, upload: XMLHttpRequest while it runs, item: <li>}

  // `accepts`: {modes, maxBytes} of the agent, {maxFileBytes, maxFilesBytes} of the hub. `onChange()` after each change.
  constructor({ list, input, button, area, error, status }, accepts, onChange) {
    Object.assign(this, { list, button, error, status, accepts, onChange });
    button.addEventListener("click", () => input.click());
    input.addEventListener("change", async () => {
      await this.add([...input.files]);
      input.value = "";
    });
    area.addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    area.addEventListener("drop", (event) => this.#take(event, event.dataTransfer));
    for (const [kind, isOver] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
      area.addEventListener(kind, (event) => {
        const hasFiles = event.dataTransfer.types.includes("Files");
        if (hasFiles) event.preventDefault();
        area.classList.toggle("dropping", hasFiles && isOver);
      });
    }
  }

  get parts() {
    return this.#files.map(({ part }) => part);
  }

  get isEmpty() {
    return this.#files.length === 0;
  }

  // True while a file is being uploaded: the question waits for it.
  get isBusy() {
    return this.#files.some(({ part }) => !part);
  }

  clear() {
    this.#files = [];
    this.list.replaceChildren();
    this.onChange();
  }

  async add(files) {
    this.error.textContent = "";
    const failures = [];
    for (const file of files) {
      try {
        this.#check(file);
        const part = await this.#read(file);
        const one = { name: file.name, bytes: file.size, part };
        this.#files.push(one);
        this.#show(one);
        if (!part) this.#upload(one, file);
      } catch (failure) {
        failures.push(`${file.name}: ${failure.message}`);
      }
    }
    this.error.textContent = failures.join("\n");
    this.onChange();
  }

  #take(event, data) {
    if (!data?.files.length) return;
    event.preventDefault();
    this.add([...data.files]);
  }

  #check({ size }) {
    const { maxFileBytes, maxFilesBytes } = this.accepts;
    if (this.#files.length >= MAX_FILES) throw new Error(`a question takes ${MAX_FILES} files.`);
    if (!size) throw new Error("it is empty.");
    const together = size + this.#files.reduce((sum, { bytes }) => sum + bytes, 0);
    if (size > maxFileBytes) throw new Error(`it has ${inBytes(size)}; the hub takes ${inBytes(maxFileBytes)} at most.`);
    if (together > maxFilesBytes) throw new Error(`the files have ${inBytes(together)} together; a question takes ${inBytes(maxFilesBytes)} at most.`);
  }

  // The part that has the file as text or data; null for a file that is to be uploaded.
  async #read(file) {
    const { modes, maxBytes } = this.accepts;
    const isTaken = this.#takesFile(file.type);
    if (isTaken && ![TEXT_TYPE, JSON_TYPE].includes(file.type)) return null;
    const text = file.size > maxBytes ? null : textIn(await file.arrayBuffer());
    if (text === null && isTaken) return null;
    if (text === null && file.size > maxBytes) throw new Error(`it has ${inBytes(file.size)}; this agent takes ${inBytes(maxBytes)} of text at most.`);
    if (text === null) throw new Error(`this agent takes ${this.#taken()}, and this is ${file.type || "of an unknown type"}.`);
    const isJson = file.type === JSON_TYPE || file.name.toLowerCase().endsWith(".json");
    const filename = file.name;
    if (isJson && modes.includes(JSON_TYPE)) {
      try {
        return { data: JSON.parse(text), filename, mediaType: JSON_TYPE };
      } catch {
        if (!modes.includes(TEXT_TYPE)) throw new Error("it is not valid JSON.");
      }
    }
    if (!modes.includes(TEXT_TYPE)) throw new Error("this agent takes JSON files only.");
    return { text: `File ${filename}:\n\n${text}`, filename, mediaType: TEXT_TYPE };
  }

  // True if the agent takes files of a media type: those it lists besides text and JSON, which all agents take as text.
  #takesFile(type) {
    const { modes } = this.accepts;
    if (modes.every((mode) => [TEXT_TYPE, JSON_TYPE].includes(mode))) return false;
    const kind = type || "application/octet-stream";
    return modes.some((mode) => [kind, `${kind.split("/")[0]}/*`, "*/*", "*"].includes(mode));
  }

  #taken() {
    const others = this.accepts.modes.filter((mode) => ![TEXT_TYPE, JSON_TYPE].includes(mode));
    return others.length ? `text, JSON and ${others.join(", ")}` : "text and JSON";
  }

  #upload(one, file) {
    const body = new FormData();
    body.append("file", file);
    const upload = (one.upload = new XMLHttpRequest());
    const bar = one.item.querySelector("progress");
    upload.upload.addEventListener("progress", ({ loaded, total }) => (bar.value = loaded / total));
    upload.addEventListener("loadend", () => {
      if (!this.#files.includes(one)) return;
      const answer = parsed(upload.responseText);
      if (upload.status !== 201) return this.#fail(one, answer?.message ?? NO_ANSWER);
      one.part = { url: answer.url, filename: answer.filename, mediaType: answer.mime };
      bar.remove();
      if (SHOWN.has(answer.mime)) one.item.prepend(Object.assign(make("img"), { src: inHub(`/api/v1/files/${answer.id}/preview`), alt: "" }));
      this.status.textContent = `${one.name} is attached.`;
      this.onChange();
    });
    upload.open("POST", inHub("/api/v1/files"));
    upload.send(body);
    this.status.textContent = `${one.name} is being uploaded.`;
  }

  #fail(one, why) {
    this.#drop(one);
    this.error.textContent = why.startsWith(one.name) ? why : `${one.name}: ${why}`;
  }

  #drop(one) {
    this.#files = this.#files.filter((each) => each !== one);
    one.item.remove();
    this.onChange();
  }

  #show(one) {
    const remove = make("button", "quiet", "Remove");
    Object.assign(remove, { type: "button", ariaLabel: `Remove ${one.name}` });
    remove.addEventListener("click", () => {
      const next = one.item.nextElementSibling ?? one.item.previousElementSibling;
      this.#drop(one);
      one.upload?.abort();
      (next?.querySelector("button") ?? this.button).focus();
      this.status.textContent = `${one.name} is removed.`;
    });
    const bar = one.part ? "" : Object.assign(make("progress"), { max: 1, value: 0, ariaLabel: `Upload of ${one.name}` });
    one.item = make("li", "", make("bdi", "", one.name), make("span", "hint", inBytes(one.bytes)), bar, remove);
    this.list.append(one.item);
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// The text of a file; null if its bytes are no text in UTF-8.
function textIn(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
