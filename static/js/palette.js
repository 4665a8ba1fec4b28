// The command palette: finds agents, threads, pages and documents. A combobox with a listbox, as WAI-ARIA describes them:
// the focus stays in the field, and `aria-activedescendant` names the chosen line.
import { inHub } from "./addresses.js";
import { make } from "./elements.js";
import { showReach } from "./failures.js";

const AFTER_MS = 120;
const MOVES = { ArrowDown: 1, ArrowUp: -1 };
const EDGES = { PageUp: 0, PageDown: -1 };
let palette = null;

export function openPalette() {
  palette ??= new Palette();
  palette.open();
}

class Palette {
  #timer = 0;
  #running = new AbortController();
  #shown = null; // the words whose lines are shown

  constructor() {
    this.field = Object.assign(make("input"), { type: "text", id: "palette-field", maxLength: 200, autocomplete: "off", spellcheck: false });
    this.list = Object.assign(make("div", "palette-lines"), { id: "palette-lines", role: "listbox", ariaLabel: "Results" });
    this.status = Object.assign(make("p", "hint"), { role: "status" });
    const label = Object.assign(make("label", "unseen", "Find agents, threads, pages and documents"), { htmlFor: "palette-field" });
    const close = Object.assign(make("button", "quiet", "Close"), { type: "button" });
    const keys = make("p", "hint keys", "↑ ↓ choose, Enter opens, Ctrl+Enter opens a tab, Esc closes");
    this.dialog = make("dialog", "sheet palette", label, make("div", "choices nowrap", this.field, close), this.list, this.status, keys);
    this.dialog.ariaLabel = "Find";
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": "palette-lines", "aria-autocomplete": "list", placeholder: "Agents, threads, pages, documents" })) this.field.setAttribute(name, value);
    document.body.append(this.dialog);
    this.field.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(), AFTER_MS);
    });
    this.field.addEventListener("keydown", (event) => this.#onKey(event));
    this.list.addEventListener("pointermove", ({ target }) => this.#choose(target.closest("[role=option]"), false));
    close.addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("click", ({ target }) => target === this.dialog && this.dialog.close());
  }

  open() {
    if (this.dialog.open) return this.field.select();
    this.dialog.showModal();
    this.field.value = "";
    this.field.focus();
    this.#shown = null;
    this.#search();
  }

  get #lines() {
    return [...this.list.querySelectorAll("[role=option]")];
  }

  get #chosen() {
    return this.list.querySelector("[aria-selected=true]");
  }

  async #search() {
    clearTimeout(this.#timer);
    const typed = this.field.value.trim();
    if (typed === this.#shown) return;
    this.#running.abort();
    this.#running = new AbortController();
    try {
      const answer = await fetch(inHub(`/palette?q=${encodeURIComponent(typed)}`), { credentials: "same-origin", signal: this.#running.signal });
      if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
      this.#show((await answer.json()).groups, typed);
      showReach(true);
    } catch (failure) {
      if (failure.name !== "AbortError") this.status.textContent = "The hub does not answer. Type on to try again.";
    }
  }

  #show(groups, typed) {
    this.#shown = typed;
    let number = 0;
    this.list.replaceChildren(
      ...groups.map(({ name, items }, index) => {
        const head = Object.assign(make("div", "palette-head", name), { id: `palette-group-${index}`, role: "presentation" });
        const group = make("div", "", head, ...items.map((one) => lineOf(one, number++)));
        group.setAttribute("role", "group");
        group.setAttribute("aria-labelledby", head.id);
        return group;
      }),
    );
    this.list.scrollTop = 0;
    this.list.hidden = !number;
    this.status.textContent = number ? `${number} result${number === 1 ? "" : "s"}` : `Nothing has the words “${typed}”.`;
    this.#choose(this.#lines[0] ?? null);
  }

  #choose(line, scrolls = true) {
    if (line === this.#chosen && line) return;
    this.#chosen?.setAttribute("aria-selected", "false");
    this.field.removeAttribute("aria-activedescendant");
    if (!line) return;
    line.setAttribute("aria-selected", "true");
    this.field.setAttribute("aria-activedescendant", line.id);
    if (scrolls) line.scrollIntoView({ block: "nearest" });
  }

  async #onKey(event) {
    const lines = this.#lines;
    if (event.isComposing) return;
    if (event.key in MOVES && lines.length) {
      event.preventDefault();
      const at = lines.indexOf(this.#chosen) + MOVES[event.key];
      this.#choose(lines.at(at % lines.length));
    } else if (event.key in EDGES && lines.length) {
      event.preventDefault();
      this.#choose(lines.at(EDGES[event.key]));
    } else if (event.key === "Enter") {
      event.preventDefault();
      const opensTab = event.ctrlKey || event.metaKey;
      await this.#search(); // the visitor may be faster than the pause after the last letter
      const { href } = this.#chosen ?? {};
      if (!href) return;
      if (opensTab) window.open(href, "_blank", "noopener");
      else location.assign(href);
      this.dialog.close();
    }
  }
}

// A link, so that it can also be opened in a tab by the mouse; keys leave the focus in the field.
function lineOf({ title, detail, url }, number) {
  const line = make("a", "palette-line", make("bdi", "", title), " ", make("span", "hint", detail));
  Object.assign(line, { href: url, id: `palette-line-${number}`, role: "option", tabIndex: -1 });
  line.setAttribute("aria-selected", "false");
  return line;
}
