// What the agent asks permission for. Tools and previews are the agent's words: shown by textContent.
import { toast } from "./toast.js";

const MOST_DECIDED = 5;
const DECIDED = { allow: "allowed", deny: "denied", expired: "ran out" };
const KEYS = { a: "allow", d: "deny" };

export class Leave {
  // `decide(requestId, decision)` gives a promise; null when it is not ours to decide.
  constructor(well, count, decide) {
    Object.assign(this, { well, count, decide, cards: new Map(), title: document.title });
    this.nothing = well.firstElementChild;
    this.focused = null;
  }

  // The hub tells once more what waits.
  forget() {
    const active = document.activeElement?.closest?.("[data-request]");
    this.focused = active?.dataset.request ?? null;
    for (const card of this.cards.values()) card.remove();
    this.cards.clear();
    this.say();
  }

  show({ requestId, tool, inputPreview }) {
    if (this.cards.has(requestId)) return;
    const card = element("div", "leave-card");
    card.dataset.request = requestId;
    card.setAttribute("role", "group");
    card.setAttribute("aria-label", `Request: ${tool}`);
    const preview = element("pre", "", inputPreview);
    preview.tabIndex = 0;
    preview.setAttribute("role", "group");
    preview.setAttribute("aria-label", "What it would do");
    card.append(element("p", "by", tool), preview, this.decide ? this.choices(requestId) : "");
    card.addEventListener("keydown", (event) => {
      if (this.decide && KEYS[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) this.settle(requestId, KEYS[event.key]);
    });
    this.cards.set(requestId, card);
    this.well.append(card);
    if (this.focused === requestId) this.focus(card);
    this.say();
  }

  choices(requestId) {
    const row = element("p", "choices");
    for (const [decision, name, kind] of [["allow", "Allow", ""], ["deny", "Deny", "danger"]]) {
      const button = element("button", kind, name);
      button.type = "button";
      button.setAttribute("aria-keyshortcuts", name[0]);
      button.addEventListener("click", () => this.settle(requestId, decision));
      row.append(button);
    }
    return row;
  }

  async settle(requestId, decision) {
    try {
      await this.decide(requestId, decision);
    } catch (refused) {
      toast(refused.message);
    }
  }

  resolve({ requestId, decision, resolverLogin }) {
    const card = this.cards.get(requestId);
    if (!card) return;
    const had_focus = card.contains(document.activeElement);
    this.cards.delete(requestId);
    delete card.dataset.request;
    card.classList.add("decided");
    card.querySelector(".choices")?.remove();
    card.append(element("p", "hint", `${DECIDED[decision] ?? decision}${resolverLogin ? ` by @${resolverLogin}` : ""}`));
    const decided = [...this.well.querySelectorAll(".decided")];
    for (const old of decided.slice(0, -MOST_DECIDED)) old.remove();
    this.say();
    if (had_focus) this.focus([...this.cards.values()][0]);
  }

  focus(card) {
    (card?.querySelector("button") ?? document.getElementById("leave-head")).focus();
  }

  say() {
    this.nothing.hidden = this.cards.size > 0;
    for (const one of document.querySelectorAll("[data-leave-count]")) one.textContent = String(this.cards.size);
    this.count.classList.toggle("bad", this.cards.size > 0);
    document.title = this.cards.size ? `(${this.cards.size}) ${this.title}` : this.title;
  }
}

function element(name, kind, text = "") {
  const made = document.createElement(name);
  made.className = kind;
  made.textContent = text;
  return made;
}
