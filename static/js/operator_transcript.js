// The transcript: the hub renders its lines, and each is shown once, by its id; replies grow while the agent writes them.
import { make } from "./elements.js";
import { hideFailure, showFailure, showReach } from "./failures.js";
import { load } from "./fragment.js";
import { renderMarkdown, renderWithin } from "./markdown.js";

const MAX_ROWS = 1000;
const MAX_GROWING_CHARS = 20_000;
const PAUSE_MS = 150;
const NEAR_PX = 80;
const NOT_OLDER = "The older lines did not come. Try again.";

export class Transcript {
  constructor(log, growing, address, permissions) {
    Object.assign(this, { log, growing, address, permissions, is_busy: false, is_behind: false, texts: new Map(), drawing: null });
    log.addEventListener("click", (event) => {
      if (event.target.id !== "older") return;
      event.preventDefault();
      this.older(event.target);
    });
    const linked = document.getElementById(location.hash.slice(1));
    if (linked) linked.scrollIntoView({ behavior: "instant" });
    else this.toEnd();
  }

  // Load the newest lines; a call during a load makes it load once more afterwards.
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
        break; // the page loads the lines again when the socket has reconnected
      }
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
    this.is_busy = false;
    this.draw();
  }

  merge(from) {
    const was_at_end = this.isAtEnd();
    this.permissions.see(from);
    const fresh = [...from.querySelectorAll("#rows > li")];
    const here = document.getElementById("rows");
    const known = fresh.find((row) => this.findRow(row.id));
    if (!known || here.children.length > MAX_ROWS) this.replaceAll(from);
    else this.insert(fresh, this.findRow(known.id));
    renderWithin(this.log);
    this.settle(fresh);
    this.drawGrowing({ except_new: this.is_behind }); // new bubbles have to wait for the lines that are loaded next
    if (was_at_end) this.toEnd();
  }

  insert(fresh, first) {
    let last = null;
    for (const row of fresh) {
      const here = this.findRow(row.id);
      const is_same = here && here.dataset.state === row.dataset.state; // the state of a question says why it has no answer
      const one = is_same ? here : document.adoptNode(row);
      if (here && !is_same) here.replaceWith(one);
      else if (!here) last ? last.after(one) : first.before(one);
      last = one;
    }
  }

  findRow(id) {
    return this.log.querySelector(`#rows > #${CSS.escape(id)}`);
  }

  replaceAll(from) {
    this.log.querySelector(".older").replaceWith(document.adoptNode(from.querySelector(".older")));
    this.log.querySelector("#rows").replaceWith(document.adoptNode(from.getElementById("rows")));
  }

  async older(link) {
    const from = await load(`${this.address}/rows${new URL(link.href).search}`).catch(() => null);
    if (!from) return showFailure(NOT_OLDER);
    hideFailure(NOT_OLDER);
    const page = document.documentElement;
    const [height, top] = [page.scrollHeight, scrollY];
    const rows = [...from.querySelectorAll("#rows > li")].filter((row) => !this.findRow(row.id));
    this.log.querySelector("#rows").prepend(...rows.map((row) => document.adoptNode(row)));
    this.log.querySelector(".older").replaceWith(document.adoptNode(from.querySelector(".older")));
    renderWithin(this.log);
    scrollTo({ top: top + page.scrollHeight - height, behavior: "instant" });
    document.getElementById("older")?.focus({ preventScroll: true });
  }

  // Add a piece of a reply. The complete reply is a line of the transcript, and may arrive before the last pieces.
  grow({ chatId, text, done }) {
    if (this.log.querySelector(`#rows > .reply[data-chat="${CSS.escape(chatId)}"]`)) return;
    const so_far = this.texts.get(chatId)?.text ?? "";
    this.texts.set(chatId, { text: (so_far + text).slice(0, MAX_GROWING_CHARS), done });
    this.drawing ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.drawing = null;
    const was_at_end = this.isAtEnd();
    this.drawGrowing({ except_new: this.is_busy }); // new bubbles have to wait for the lines that are being loaded
    if (was_at_end) this.toEnd();
  }

  // Bubble, text and scrolling change in the same frame: no frame shows one without the others.
  drawGrowing({ except_new = false } = {}) {
    for (const [chatId, { text }] of this.texts) {
      const bubble = this.find(chatId) ?? (except_new ? null : this.begin(chatId));
      bubble?.lastChild.replaceChildren(renderMarkdown(text));
    }
  }

  begin(chatId) {
    const bubble = make("li", "reply growing", make("p", "by", "agent, writing…"), make("div", "prose"));
    bubble.dataset.chat = chatId;
    this.growing.append(bubble);
    return bubble;
  }

  find(chatId) {
    return [...this.growing.children].find((one) => one.dataset.chat === chatId);
  }

  settle(rows) {
    const answered = new Set(rows.filter((row) => row.classList.contains("reply")).map((row) => row.dataset.chat));
    for (const [chatId, { done }] of [...this.texts]) {
      if (!answered.has(chatId) && !done) continue;
      this.texts.delete(chatId);
      this.find(chatId)?.remove();
    }
  }

  // The end is that of the parent element, which includes the form below the transcript.
  isAtEnd() {
    return this.log.parentElement.getBoundingClientRect().bottom - innerHeight < NEAR_PX;
  }

  toEnd() {
    const { bottom } = this.log.parentElement.getBoundingClientRect();
    scrollBy({ top: bottom - innerHeight, behavior: "instant" });
  }
}
