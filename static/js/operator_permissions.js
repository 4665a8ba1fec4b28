// The undecided permission requests at the end of the transcript: the hub renders them, and an approver decides.
import { toast } from "./toast.js";

const KEYS = { a: "allow", d: "deny" };

export class Permissions {
  // `decide(requestId, decision)` returns a promise; the hub renders buttons only for users who may decide.
  constructor(list, count, decide) {
    Object.assign(this, { list, count, decide, title: document.title });
    list.addEventListener("click", ({ target }) => {
      if (target.dataset.decision) this.settle(requestOf(target), target.dataset.decision);
    });
    list.addEventListener("keydown", (event) => {
      const decision = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
      const request = requestOf(event.target);
      if (decision && request?.querySelector("button")) this.settle(request, decision);
    });
    this.showCount();
  }

  // Show the requests of a newer page from the hub, the newest on top; requests shown before keep their place and the focus.
  see(from) {
    const fresh = [...from.querySelectorAll("#waiting > li")];
    const ids = new Set(fresh.map(({ id }) => id));
    const gone = this.undecided.filter(({ id }) => !ids.has(id));
    const hadFocus = gone.some((one) => one.contains(document.activeElement));
    for (const one of gone) leaveSpace(one);
    const here = new Set(this.undecided.map(({ id }) => id));
    this.list.prepend(...fresh.filter(({ id }) => !here.has(id)).map((one) => document.adoptNode(one)));
    const { undecided } = this;
    if (!undecided.length) this.list.replaceChildren();
    this.showCount();
    if (hadFocus) (undecided.at(-1)?.querySelector("button") ?? document.getElementById("transcript-head")).focus();
  }

  get undecided() {
    return [...this.list.children].filter(({ id }) => id);
  }

  async settle(request, decision) {
    const buttons = request.querySelectorAll("button");
    for (const button of buttons) button.ariaDisabled = "true"; // a button with `disabled` would lose the focus
    try {
      await this.decide(request.dataset.request, decision);
    } catch (refused) {
      toast(refused.message);
      for (const button of buttons) button.ariaDisabled = null;
    }
  }

  showCount() {
    const count = this.undecided.length;
    this.count.textContent = String(count);
    this.count.closest("a").hash = this.undecided.at(-1)?.id ?? "transcript-head";
    this.count.classList.toggle("bad", count > 0);
    document.title = count ? `(${count}) ${this.title}` : this.title;
  }
}

// The place of a decided request stays empty while others wait, so that their buttons do not move under the pointer.
function leaveSpace(item) {
  const space = document.createElement("li");
  space.ariaHidden = "true";
  space.style.height = `${item.offsetHeight}px`;
  item.replaceWith(space);
}

const requestOf = (element) => element.closest("[data-request]");
