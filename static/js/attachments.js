// Files that go with a question: chosen, dropped or pasted. The hub passes on text and JSON, so a file becomes a part of
// one of these types, if the agent's card accepts the type. The page refuses other files before it sends anything.
import { inBytes, make } from "./elements.js";

const MAX_FILES = 20;
const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain";

export class Attachments {
  #files = []; // {name, bytes, part}

  // `accepts`: {modes, maxBytes} of the agent. `onChange()` after each change.
  constructor({ list, input, button, area, error }, accepts, onChange) {
    Object.assign(this, { list, error, accepts, onChange });
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

  clear() {
    this.#files = [];
    this.#show();
  }

  async add(files) {
    this.error.textContent = "";
    const failures = [];
    for (const file of files) {
      try {
        this.#check(file);
        this.#files.push({ name: file.name, bytes: file.size, part: await this.#read(file) });
      } catch (failure) {
        failures.push(`${file.name}: ${failure.message}`);
      }
    }
    this.error.textContent = failures.join("\n");
    this.#show();
  }

  #take(event, data) {
    if (!data?.files.length) return;
    event.preventDefault();
    this.add([...data.files]);
  }

  #check({ size }) {
    const { maxBytes } = this.accepts;
    if (this.#files.length >= MAX_FILES) throw new Error(`a question takes ${MAX_FILES} files.`);
    const together = size + this.#files.reduce((sum, { bytes }) => sum + bytes, 0);
    if (size > maxBytes) throw new Error(`it has ${inBytes(size)}; this agent takes ${inBytes(maxBytes)} at most.`);
    if (together > maxBytes) throw new Error(`the files have ${inBytes(together)} together; this agent takes ${inBytes(maxBytes)} at most.`);
  }

  // The part of the message that carries a file.
  async #read(file) {
    const text = await readText(file);
    const isJson = file.type === JSON_TYPE || file.name.toLowerCase().endsWith(".json");
    const { modes } = this.accepts;
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

  #show() {
    const items = this.#files.map((file) => {
      const remove = make("button", "quiet", "Remove");
      Object.assign(remove, { type: "button", ariaLabel: `Remove ${file.name}` });
      remove.addEventListener("click", () => {
        this.#files = this.#files.filter((one) => one !== file);
        this.#show();
      });
      return make("li", "", make("bdi", "", file.name), make("span", "hint", inBytes(file.bytes)), remove);
    });
    this.list.replaceChildren(...items);
    this.onChange();
  }
}

async function readText(file) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    if (!text.includes("\0")) return text;
  } catch {
    // the bytes are not UTF-8: refused below, like a text with a NUL
  }
  throw new Error("agents of this hub take text and JSON, and this is neither.");
}
