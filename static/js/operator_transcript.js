// The transcript: its lines come from the hub's own templates, each once, by their ids; replies grow as they are written.
import { hideFailure, showFailure, showReach } from "./failures.js";
import { load } from "./fragment.js";

const MOST_ROWS = 1000;
const MOST_GROWING_CHARS = 20_000;
const PAUSE_MS = 150;
const NEAR_PX = 80;
const NOT_OLDER = "The older lines did not come. Try again.";

export class Transcript {
  constructor(well, growing, address) {
    Object.assign(this, { well, growing, address, is_busy: false, is_behind: false });
    well.addEventListener("click", (event) => {
      if (event.target.id !== "older") return;
      event.preventDefault();
      this.older(event.target);
    });
    this.toEnd();
  }

  // Something happened: look. Asked for while it looks, it looks once more.
  async refresh() {
    this.is_behind = true;
    if (this.is_busy) return;
    this.is_busy = true;
    while (this.is_behind) {
      this.is_behind = false;
      try {
        this.merge(await load(`${this.address}/rows`));
        showReach(true);
      } catch {
        showReach(false);
        break; // the next connection looks again
      }
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
    this.is_busy = false;
  }

  merge(from) {
    const was_at_end = this.isAtEnd();
    const fresh = [...from.querySelectorAll("#rows > li")];
    const known = fresh.find((row) => document.getElementById(row.id));
    const here = document.getElementById("rows");
    if (!known || here.children.length > MOST_ROWS) this.replaceAll(from);
    else this.insert(fresh, document.getElementById(known.id));
    this.settle(fresh);
    if (was_at_end) this.toEnd();
  }

  insert(fresh, first) {
    let last = null;
    for (const row of fresh) {
      const here = document.getElementById(row.id);
      const one = here ?? document.adoptNode(row);
      if (!here) last ? last.after(one) : first.before(one);
      last = one;
    }
  }

  replaceAll(from) {
    this.well.querySelector(".older").replaceWith(document.adoptNode(from.querySelector(".older")));
    this.well.querySelector("#rows").replaceWith(document.adoptNode(from.getElementById("rows")));
  }

  async older(link) {
    const from = await load(`${this.address}/rows${new URL(link.href).search}`).catch(() => null);
    if (!from) return showFailure(NOT_OLDER);
    hideFailure(NOT_OLDER);
    const height = this.well.scrollHeight;
    const top = this.well.scrollTop;
    const rows = [...from.querySelectorAll("#rows > li")].filter((row) => !document.getElementById(row.id));
    this.well.querySelector("#rows").prepend(...rows.map((row) => document.adoptNode(row)));
    this.well.querySelector(".older").replaceWith(document.adoptNode(from.querySelector(".older")));
    this.well.scrollTop = top + this.well.scrollHeight - height;
    this.well.focus();
  }

  // A piece of a reply; the whole follows as a line.
  grow({ chatId, text, done }) {
    const was_at_end = this.isAtEnd();
    const bubble = this.find(chatId) ?? this.begin(chatId);
    const said = bubble.lastChild;
    said.append(text.slice(0, Math.max(0, MOST_GROWING_CHARS - said.textContent.length)));
    if (done) bubble.dataset.done = "";
    if (was_at_end) this.toEnd();
  }

  begin(chatId) {
    const bubble = document.createElement("li");
    bubble.className = "reply growing";
    bubble.dataset.chat = chatId;
    const by = document.createElement("p");
    by.className = "by";
    by.textContent = "agent, writing…";
    const said = document.createElement("div");
    said.className = "said";
    bubble.append(by, said);
    this.growing.append(bubble);
    return bubble;
  }

  find(chatId) {
    return [...this.growing.children].find((one) => one.dataset.chat === chatId);
  }

  settle(rows) {
    const told = new Set(rows.filter((row) => row.classList.contains("reply")).map((row) => row.dataset.chat));
    for (const one of [...this.growing.children]) {
      if (told.has(one.dataset.chat) || "done" in one.dataset) one.remove();
    }
  }

  isAtEnd() {
    return this.well.scrollHeight - this.well.scrollTop - this.well.clientHeight < NEAR_PX;
  }

  toEnd() {
    this.well.scrollTop = this.well.scrollHeight;
  }
}
