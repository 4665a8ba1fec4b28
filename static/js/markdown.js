// Markdown of untrusted authors as DOM nodes, by the rules of the hub's own renderer (kit/markdown.py): HTML is shown
// as text, images become links, headings begin at h3. `renderMarkdown(text)` has no side effects; `renderWithin(parent)`
// renders the texts that a page of the hub came with.
import "./vendor/markdown-it-14.2.0.min.js"; // has no exports: it sets `globalThis.markdownit`
import { appendCode } from "./highlight.js";

const MAX_CHARS = 100_000;
const MAX_DEPTH = 60; // the browser lays out nested elements recursively
const MAX_CELLS = 10_000; // short rows are filled up with empty cells: a short text can make very many
const SHIFT = 2; // the page's own headings are h1 and h2
const DEEPEST = 6;
const REL = "nofollow noopener ugc";
const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const TASK = /^\[([ xX])\][ \t]/;

const reader = globalThis.markdownit("commonmark", { html: false, maxNesting: 20 });
reader.enable(["table", "strikethrough"]).disable("image");
reader.core.ruler.after("inline", "mark_tasks", markTasks); // before escaped characters are merged into the text

export function renderMarkdown(text) {
  const fragment = document.createDocumentFragment();
  new Builder(fragment).add(reader.parse(text.slice(0, MAX_CHARS).replaceAll("\0", ""), {}));
  fragment.normalize(); // merges adjacent text nodes
  return fragment;
}

// Renders the texts of the elements with `data-markdown`, which came as plain text, once.
export function renderWithin(parent) {
  for (const element of parent.querySelectorAll("[data-markdown]")) {
    element.replaceChildren(renderMarkdown(element.textContent));
    element.removeAttribute("data-markdown");
  }
}

// Begin the list items `- [ ] text` and `- [x] text` with a box.
function markTasks({ tokens, Token }) {
  tokens.forEach((item, index) => {
    const [paragraph, inline] = tokens.slice(index + 1, index + 3);
    if (item.type !== "list_item_open" || paragraph.type !== "paragraph_open") return;
    const [first] = inline.children;
    const task = first?.type === "text" ? TASK.exec(first.content) : null;
    if (!task) return;
    item.attrSet("class", "task");
    first.content = first.content.slice(3);
    inline.children.unshift(Object.assign(new Token("task_box", "input", 0), { meta: { isDone: task[1] !== " " } }));
  });
}

// Makes elements of tokens. A token over a limit gets no element; its content is added to the parent.
class Builder {
  #open; // the open elements, the innermost last; for a token over a limit, its parent once more
  #cells = 0;

  constructor(parent) {
    this.#open = [parent];
  }

  add(tokens) {
    for (const token of tokens) {
      if (token.type === "inline") this.add(token.children);
      else if (token.hidden) continue; // the paragraph of a tight list
      else if (token.nesting > 0) this.#begin(token);
      else if (token.nesting < 0) this.#open.pop();
      else this.#parent.append(LEAVES[token.type]?.(token) ?? token.content);
    }
  }

  get #parent() {
    return this.#open.at(-1);
  }

  #begin(token) {
    if (token.type === "td_open") this.#cells += 1;
    const isOver = this.#open.length > MAX_DEPTH || (token.type === "td_open" && this.#cells > MAX_CELLS);
    const element = isOver ? this.#parent : makeElement(token);
    if (!isOver) this.#parent.append(element);
    this.#open.push(element);
  }
}

function makeElement(token) {
  const { type, tag } = token;
  if (type === "heading_open") return document.createElement(`h${Math.min(Number(tag[1]) + SHIFT, DEEPEST)}`);
  const element = document.createElement(tag);
  if (type === "link_open") setAddress(element, token);
  if (type === "ordered_list_open" && token.attrGet("start") !== null) element.start = token.attrGet("start");
  const name = token.attrGet("class") ?? token.attrGet("style")?.replace("text-align:", "align-"); // the Content-Security-Policy forbids styles
  if (name) element.className = name;
  return element;
}

// A link whose scheme is not allowed gets no address.
function setAddress(link, token) {
  const [address, title] = [token.attrGet("href"), token.attrGet("title")];
  const isAllowed = URL.canParse(address, document.baseURI) && SCHEMES.has(new URL(address, document.baseURI).protocol);
  if (isAllowed) link.href = address;
  if (title) link.title = title;
  link.rel = REL;
}

// Makes the nodes of tokens without children, other than text.
const LEAVES = {
  hr: () => document.createElement("hr"),
  hardbreak: () => document.createElement("br"),
  softbreak: () => "\n",
  code_inline: ({ content }) => makeCode(content),
  code_block: ({ content }) => makeCodeBlock(content),
  fence: ({ content, info }) => makeCodeBlock(content, reader.utils.unescapeAll(info).trim().split(/\s/)[0]),
  task_box: ({ meta: { isDone } }) => {
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", disabled: true, ariaLabel: isDone ? "Done" : "To do" });
    box.toggleAttribute("checked", isDone);
    return box;
  },
};

function makeCode(text, language = "") {
  const code = document.createElement("code");
  appendCode(code, text, language);
  return code;
}

function makeCodeBlock(text, language) {
  const block = document.createElement("pre");
  block.tabIndex = 0; // wide code can be scrolled by the keyboard too
  block.append(makeCode(text, language));
  return block;
}
