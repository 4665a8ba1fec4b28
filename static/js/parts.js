// Shows the parts of messages as elements: text (Markdown or plain), images, files to save, data, links (`PartsView`).
// Files that the hub keeps are shown by `kept_files.js`. No part loads anything from another server: the page's
// Content-Security-Policy forbids it, and that server would learn who reads the page.
import { copyButton } from "./copy.js";
import { inBytes, make } from "./elements.js";
import { keptFile, keptId } from "./kept_files.js";
import { renderMarkdown } from "./markdown.js";

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const MAX_MARKDOWN_CHARS = 100_000; // the rest of a longer text is shown as plain text
const MAX_CHARS = 200_000;
const CHEAP_MS = 20;
const MAX_ROWS = 100;
const MAX_COLUMNS = 12;

// Shows parts in an element, and updates them while more arrive. `setRaw(true)`: shows texts as they were sent.
export class PartsView {
  #views = [];
  #parts = [];
  #isRaw = false;

  constructor(element) {
    this.element = element;
  }

  show(parts) {
    this.#parts = mergeTexts(parts);
    this.#parts.forEach((part, index) => this.#showOne(part, index));
    for (const view of this.#views.splice(this.#parts.length)) view.node.remove();
  }

  // Called after the last part: shows parts that were not drawn yet.
  finish() {
    for (const view of this.#views) view.finish?.();
  }

  setRaw(isRaw) {
    this.#isRaw = isRaw;
    for (const view of this.#views.splice(0)) view.node.remove();
    this.show(this.#parts);
  }

  get text() {
    return this.#parts.map(asText).filter(Boolean).join("\n");
  }

  #showOne(part, index) {
    const kind = kindOf(part, this.#isRaw);
    const before = this.#views[index];
    if (before?.kind === kind && before.update) return before.update(part);
    if (before?.part === part) return;
    const view = { kind, part, ...VIEWS[kind](part) };
    if (before) before.node.replaceWith(view.node);
    else this.element.append(view.node);
    this.#views[index] = view;
  }
}

export const asText = (part) => part.text ?? (part.data === undefined ? (part.url ?? "") : JSON.stringify(part.data, null, 2));

// Joins adjacent pieces of a text that arrived by a stream into one part.
function mergeTexts(parts) {
  const merged = [];
  for (const part of parts) {
    const last = merged.at(-1);
    const isMore = last?.text !== undefined && part.text !== undefined && !part.filename && !last.filename && last.mediaType === part.mediaType;
    if (isMore) merged[merged.length - 1] = { ...last, text: last.text + part.text };
    else merged.push(part);
  }
  return merged;
}

function kindOf({ text, data, raw, url = "", mediaType = "", filename }, isRaw) {
  if (text !== undefined) {
    if (filename) return "file";
    return isRaw || !["", "text/markdown"].includes(bareType(mediaType)) ? "plain" : "markdown";
  }
  if (data !== undefined) return isTable(data) && !isRaw ? "table" : "data";
  if (raw === undefined) return keptId(url) ? "kept" : "link";
  return IMAGES.has(bareType(mediaType)) ? "image" : "file";
}

const bareType = (mediaType) => mediaType.split(";")[0].trim().toLowerCase();
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isTable = (data) => Array.isArray(data) && data.length > 0 && data.every((row) => isObject(row) && Object.keys(row).length > 0);

const VIEWS = { markdown: showMarkdown, plain: showPlain, table: showTable, data: showData, image: showImage, file: showFile, kept: (part) => keptFile(part, showWhole), link: showLink };

function showMarkdown({ mediaType, text: first }) {
  // A text without a media type may be plain text: its line breaks are kept.
  const node = make("div", mediaType ? "prose" : "prose lines");
  node.dir = "auto";
  const blocks = [];
  const [shown, rest] = [make("div"), make("p", "said")];
  node.append(shown, rest);
  const { update, finish } = paced(({ text }) => {
    showBlocks(shown, blocks, renderMarkdown(text.slice(0, MAX_MARKDOWN_CHARS)));
    rest.textContent = text.slice(MAX_MARKDOWN_CHARS, MAX_CHARS);
  });
  update({ text: first });
  return { node, update, finish };
}

// Show blocks in an element. Unchanged blocks at the beginning stay, and so does a selection in them.
function showBlocks(element, blocks, fresh) {
  const wanted = [...fresh.childNodes].map((node) => ({ node, html: node.outerHTML }));
  const differs = wanted.findIndex(({ html }, index) => html !== blocks[index]?.html);
  const kept = differs < 0 ? wanted.length : differs;
  for (const { node } of blocks.splice(kept)) node.remove();
  for (const block of wanted.slice(kept)) {
    blocks.push(block);
    element.append(block.node);
  }
  for (const link of element.querySelectorAll("a:not([target])")) link.target = "_blank";
  for (const pre of element.querySelectorAll("pre:not(:has(button))")) pre.prepend(copyButton(pre.firstElementChild));
}

// `update(value)` calls `act(value)`, or, if calls take long, calls it later with the newest value; `finish` makes a
// delayed call at once.
function paced(act) {
  let [timer, costMs, last] = [0, 0, null];
  const run = () => {
    const begun = performance.now();
    timer = 0;
    act(last);
    costMs = performance.now() - begun;
  };
  const update = (value) => {
    last = value;
    if (costMs < CHEAP_MS) run();
    else timer ||= setTimeout(run, costMs * 10);
  };
  const finish = () => {
    if (!timer) return;
    clearTimeout(timer);
    run();
  };
  return { update, finish };
}

function showPlain(part) {
  const node = make("p", "said");
  node.dir = "auto";
  const update = ({ text }) => (node.textContent = text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}… (cut here; Copy has all)` : text);
  update(part);
  return { node, update };
}

function showData({ data, filename }) {
  const json = JSON.stringify(data, null, 2) ?? "";
  return { node: collapsed(filename || describeData(data), json, json.length < 2000) };
}

function describeData(data) {
  const count = Array.isArray(data) ? data.length : isObject(data) ? Object.keys(data).length : 0;
  if (Array.isArray(data)) return `Data: a list of ${count}`;
  return isObject(data) ? `Data: ${count} field${count === 1 ? "" : "s"}` : "Data";
}

function collapsed(title, json, isOpen) {
  const code = make("pre", "", make("code", "", json.length > MAX_CHARS ? `${json.slice(0, MAX_CHARS)}…` : json));
  code.tabIndex = 0;
  const node = make("details", "data", make("summary", "", title), code);
  node.open = isOpen;
  return node;
}

function showTable({ data, filename }) {
  const all = [...new Set(data.slice(0, MAX_ROWS).flatMap((row) => Object.keys(row)))];
  const columns = all.slice(0, MAX_COLUMNS);
  const heads = columns.map((name) => Object.assign(make("th", holdsNumbers(data, name) ? "number" : "", name), { scope: "col" }));
  const rows = data.slice(0, MAX_ROWS).map((row) => make("tr", "", ...columns.map((name) => cellOf(row[name]))));
  const table = make("table", "", make("thead", "", make("tr", "", ...heads)), make("tbody", "", ...rows));
  const scroll = make("div", "table-scroll", table);
  Object.assign(scroll, { tabIndex: 0, role: "region", ariaLabel: filename || "Table" });
  const left = [data.length > MAX_ROWS && `${data.length - MAX_ROWS} more rows`, all.length > MAX_COLUMNS && `${all.length - MAX_COLUMNS} more columns`];
  const summary = ["As JSON", ...left.filter(Boolean)].join(", ");
  return { node: make("div", "data", scroll, collapsed(summary, JSON.stringify(data, null, 2), false)) };
}

const holdsNumbers = (rows, name) => rows.slice(0, MAX_ROWS).every((row) => ["number", "undefined"].includes(typeof row[name]));

function cellOf(value) {
  const shown = value === undefined || value === null ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return make("td", typeof value === "number" ? "number" : "", shown);
}

function showImage({ raw, mediaType, filename }) {
  const address = `data:${bareType(mediaType)};base64,${standard(raw)}`;
  const picture = () => Object.assign(make("img"), { src: address, alt: filename ? `Image ${filename}` : "An image of the agent" });
  const open = make("button", "image", picture());
  open.type = "button";
  open.title = "Full size";
  open.addEventListener("click", () => showWhole(picture(), filename));
  return { node: make("figure", "", open, make("figcaption", "", saveLink({ raw, mediaType, filename: filename || "image" }))) };
}

// Show the picture in full size in a dialog.
function showWhole(picture, filename) {
  const close = Object.assign(make("button", "quiet", "Close"), { type: "button" });
  const scroll = make("div", "whole", picture);
  scroll.tabIndex = 0;
  const dialog = make("dialog", "picture", scroll, make("p", "choices", close));
  dialog.ariaLabel = filename || "The image in full size";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function showFile(part) {
  return { node: make("p", "file", saveLink(part)) };
}

// The type `application/octet-stream` makes the browser save the file, never show it as a page of the hub.
function saveLink({ raw, text, mediaType, filename = "file" }) {
  const bytes = text === undefined ? standard(raw) : base64Of(text);
  const size = inBytes(Math.floor((bytes.replace(/=+$/, "").length * 3) / 4));
  const link = make("a", "", make("bdi", "", filename));
  link.href = `data:application/octet-stream;base64,${bytes}`;
  link.download = filename;
  return make("span", "saved", link, make("span", "hint", [mediaType, size].filter(Boolean).join(", ")));
}

const standard = (raw) => raw.replaceAll("-", "+").replaceAll("_", "/").replace(/[^A-Za-z0-9+/=]/g, "");

function base64Of(text) {
  let bytes = "";
  for (const one of new TextEncoder().encode(text)) bytes += String.fromCharCode(one);
  return btoa(bytes);
}

function showLink({ url = "", mediaType, filename }) {
  const isPage = URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol);
  const name = make("bdi", "", filename || url);
  const link = isPage ? make("a", "", name) : name;
  if (isPage) Object.assign(link, { href: url, rel: "nofollow noopener noreferrer ugc", target: "_blank" });
  const about = isPage ? [mediaType, "at", new URL(url).host] : [mediaType, filename ? url : ""];
  return { node: make("p", "file", link, " ", make("span", "hint", about.filter(Boolean).join(" "))) };
}
