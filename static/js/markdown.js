// Markdown of untrusted authors as DOM nodes, by the rules of the hub's own renderer (kit/markdown.py): HTML is shown
// as text, images become links, headings begin at h3. `renderMarkdown(text)` has no effect outside what it returns.
import { appendCode } from "./highlight.js";
import { appendInline, readReference } from "./markdown_inline.js";

const MAX_CHARS = 100_000;
const MAX_DEPTH = 20; // of lists and quotes: deeper ones are shown as text
const MAX_CELLS = 10_000;
const SHIFT = 2; // the page's own headings are h1 and h2
const DEEPEST = 6;

const FENCE = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})[ \t]*/;
const HEADING = /^ {0,3}(#{1,6})(?![^ \t])/;
const RULE = /^(?:-{3,}|\*{3,}|_{3,})$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^( {0,3})(?:([-+*])|(\d{1,9})([.)]))(?=[ \t]|$)/;
const DASHES = /^\|?[ \t]*:?-+:?(?:[ \t]*\|[ \t]*:?-+:?)*(?:[ \t]*\|)?$/;

const TASK = /^\[([ xX])\][ \t]/;

export function renderMarkdown(text) {
  const fragment = document.createDocumentFragment();
  // What waits for the end: texts need all link definitions, and lists know late whether their items are paragraphs.
  const page = { texts: [], tight: [], tasks: new Map(), cells: 0, references: new Map() };
  const lines = text.slice(0, MAX_CHARS).replaceAll("\0", "").split(/\r\n|\r|\n/);
  addBlocks(fragment, lines.map(expandTabs), page, 0);
  for (const [element, source] of page.texts) appendInline(element, addBox(element, source, page), page.references);
  for (const paragraph of page.tight) paragraph.replaceWith(...paragraph.childNodes);
  return fragment;
}

// Append the blocks of some lines; gives whether an empty line is between two of them.
function addBlocks(parent, lines, page, depth) {
  let [at, end, isSpaced] = [0, 0, false];
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    isSpaced ||= end > 0 && at > end;
    end = at = addBlock(parent, lines, at, page, depth);
    while (end > 0 && isBlank(lines[end - 1])) end -= 1; // a list has read on
  }
  return isSpaced;
}

// Append the block that begins at a line; gives the line after it.
function addBlock(parent, lines, at, page, depth) {
  const line = lines[at];
  if (indentOf(line) >= 4) return addIndented(parent, lines, at);
  if (FENCE.test(line)) return addFenced(parent, lines, at);
  if (HEADING.test(line)) return addHeading(parent, line, at, page);
  if (isRule(line)) return append(parent, "hr") && at + 1;
  if (depth < MAX_DEPTH && QUOTE.test(line)) return addQuote(parent, lines, at, page, depth);
  if (depth < MAX_DEPTH && MARKER.test(line)) return addList(parent, lines, at, page, depth);
  if (isTable(lines, at)) return addTable(parent, lines, at, page);
  return addParagraph(parent, lines, at, page, depth);
}

function addIndented(parent, lines, at) {
  let end = at;
  for (let next = at; next < lines.length && (isBlank(lines[next]) || indentOf(lines[next]) >= 4); next += 1) {
    if (!isBlank(lines[next])) end = next + 1;
  }
  addCode(parent, lines.slice(at, end).map((line) => line.slice(4)));
  return end;
}

function addFenced(parent, lines, at) {
  const [, indent, fence] = FENCE.exec(lines[at]);
  let end = at + 1;
  while (end < lines.length && !closes(fence, lines[end])) end += 1;
  const inside = lines.slice(at + 1, end);
  const [language] = lines[at].trim().slice(fence.length).trim().split(/\s/);
  addCode(parent, inside.map((line) => line.slice(Math.min(indent.length, indentOf(line)))), language);
  return Math.min(end + 1, lines.length);
}

function addCode(parent, lines, language = "") {
  const block = append(parent, "pre");
  block.tabIndex = 0; // code that is wider than the page, by the keyboard too
  appendCode(append(block, "code"), lines.map((line) => `${line}\n`).join(""), language);
}

function addHeading(parent, line, at, page) {
  const [marks, { length: level }] = HEADING.exec(line);
  const text = line.slice(marks.length).trim();
  const bare = text.slice(0, endBefore(text, "#"));
  const title = bare === text || /(?:^|[ \t])$/.test(bare) ? bare.trim() : text; // "a #" ends before the mark
  addText(append(parent, headingOf(level)), title, page);
  return at + 1;
}

function addQuote(parent, lines, at, page, depth) {
  const [inside, end] = readContainer(lines, at, (line) => (QUOTE.test(line) ? line.replace(QUOTE, "") : null));
  addBlocks(append(parent, "blockquote"), inside.map(expandTabs), page, depth + 1);
  return end;
}

function addList(parent, lines, at, page, depth) {
  const first = readMarker(lines[at]);
  const list = append(parent, first.start === null ? "ul" : "ol");
  if (first.start !== null && first.start !== 1) list.start = first.start;
  const items = [];
  let isLoose = false;
  let end = at;
  for (let marker = first; marker?.kind === first.kind; marker = end < lines.length ? readMarker(lines[end]) : null) {
    const strip = (line) => {
      if (isBlank(line)) return "";
      if (indentOf(line) >= marker.width) return line.slice(marker.width);
      return readMarker(line) ? undefined : null;
    };
    const [inside, next] = readContainer(lines, end, strip, marker.rest);
    const item = append(list, "li");
    const isSpaced = addBlocks(item, inside, page, depth + 1);
    isLoose ||= isSpaced || (items.length > 0 && isBlank(lines[end - 1]));
    items.push(item);
    if (item.firstElementChild?.tagName === "P") page.tasks.set(item.firstElementChild, item);
    end = next;
  }
  if (!isLoose) page.tight.push(...items.flatMap((item) => [...item.children].filter(({ tagName }) => tagName === "P")));
  return end;
}

// Put a box before the first text of a list item that begins with `[ ]` or `[x]`; returns the text without these.
function addBox(element, source, page) {
  const task = page.tasks.has(element) ? TASK.exec(source) : null;
  if (!task || page.references.has(task[1].trim().toLowerCase())) return source;
  const isDone = task[1] !== " ";
  const box = append(element, "input");
  Object.assign(box, { type: "checkbox", disabled: true, ariaLabel: isDone ? "Done" : "To do" });
  box.toggleAttribute("checked", isDone);
  page.tasks.get(element).className = "task";
  return source.slice(3);
}

// The kind of a list item, where its text begins, and its first line without the marker; null for other lines.
function readMarker(line) {
  const found = isRule(line) ? null : MARKER.exec(line);
  if (!found) return null;
  const [all, , bullet, number, after] = found;
  const rest = line.slice(all.length);
  const gap = isBlank(rest) || indentOf(rest) > 4 ? 1 : indentOf(rest);
  const start = number === undefined ? null : Number(number);
  return { kind: bullet ?? after, start, width: all.length + gap, rest: expandTabs(rest.slice(gap)) };
}

// The lines inside a quote or list item without their marks, and the line after it. `strip(line)` gives null for a line
// without them, which may go on with a paragraph, and undefined for the next item.
function readContainer(lines, at, strip, first = strip(lines[at])) {
  const inside = [first];
  let fence = fenceAfter("", first);
  let end = at + 1;
  for (; end < lines.length; end += 1) {
    const line = strip(lines[end]);
    if (line === undefined || (line === null && (fence || !goesOn(inside.at(-1), lines, end)))) break;
    inside.push(line ?? lines[end]);
    fence = fenceAfter(fence, line ?? "");
  }
  return [inside, end];
}

// Whether a line belongs to the paragraph that the line before may be of, although it lacks the marks.
function goesOn(before, lines, at) {
  let text = before;
  for (let depth = 0; depth < MAX_DEPTH && (QUOTE.test(text) || readMarker(text)); depth += 1) {
    text = QUOTE.test(text) ? text.replace(QUOTE, "") : readMarker(text).rest;
  }
  const isText = !isBlank(text) && !FENCE.test(text) && !HEADING.test(text) && !isRule(text) && indentOf(text) < 4;
  return isText && !isBlank(lines[at]) && !interrupts(lines, at);
}

function addTable(parent, lines, at, page) {
  const table = append(parent, "table");
  const head = splitRow(lines[at]);
  const sides = splitRow(lines[at + 1]).map(sideOf);
  addRow(append(table, "thead"), "th", head, sides, page);
  let end = at + 2;
  let body = null;
  while (end < lines.length && page.cells < MAX_CELLS && !isBlank(lines[end]) && !interrupts(lines, end)) {
    body ??= append(table, "tbody");
    addRow(body, "td", splitRow(lines[end]).slice(0, head.length), sides, page);
    end += 1;
  }
  return end;
}

function addRow(parent, kind, cells, sides, page) {
  const row = append(parent, "tr");
  page.cells += cells.length;
  cells.forEach((text, column) => {
    const cell = append(row, kind);
    if (sides[column]) cell.className = `align-${sides[column]}`;
    addText(cell, text, page);
  });
}

// The alignment of a column, by the dashes below its head.
const sideOf = (dashes) => {
  if (dashes.endsWith(":")) return dashes.startsWith(":") ? "center" : "right";
  return dashes.startsWith(":") ? "left" : "";
};

function isTable(lines, at) {
  const next = lines[at + 1] ?? "";
  if (!lines[at].includes("|") || !/[|:]/.test(next) || indentOf(next) >= 4 || !DASHES.test(next.trim())) return false;
  return splitRow(lines[at]).length === splitRow(next).length;
}

function splitRow(line) {
  const cells = [""];
  const text = line.trim();
  for (let at = text.startsWith("|") ? 1 : 0; at < text.length; at += 1) {
    const isEscaped = text[at] === "\\" && text[at + 1] === "|";
    if (text[at] === "|") cells.push("");
    else cells[cells.length - 1] += isEscaped ? text[++at] : text[at];
  }
  if (cells.length > 1 && !cells.at(-1)) cells.pop();
  return cells.map((cell) => cell.trim());
}

function addParagraph(parent, lines, at, page, depth) {
  let end = at + 1;
  let level = 0;
  for (; end < lines.length && !isBlank(lines[end]); end += 1) {
    level = /^ {0,3}=+[ \t]*$/.test(lines[end]) ? 1 : /^ {0,3}-+[ \t]*$/.test(lines[end]) ? 2 : 0;
    if (level || (depth < MAX_DEPTH && interrupts(lines, end))) break;
  }
  let first = at;
  while (first < end && readReference(lines[first], page.references)) first += 1;
  const text = lines.slice(first, end).map((line) => line.trimStart()).join("\n").trimEnd();
  if (text) addText(append(parent, level ? headingOf(level) : "p"), text, page);
  return level ? end + 1 : end;
}

// Whether a line ends the paragraph before it.
function interrupts(lines, at) {
  const line = lines[at];
  if (indentOf(line) >= 4) return false;
  if (FENCE.test(line) || HEADING.test(line) || isRule(line) || QUOTE.test(line)) return true;
  const marker = readMarker(line);
  if (marker && !isBlank(marker.rest) && (marker.start ?? 1) === 1) return true;
  return isTable(lines, at);
}

function closes(fence, line) {
  const text = line.trim();
  return indentOf(line) < 4 && text.length >= fence.length && text[0] === fence[0] && endBefore(text, fence[0]) === 0;
}

// The fence that is open after a line, or "".
const fenceAfter = (open, line) => (open ? (closes(open, line) ? "" : open) : (FENCE.exec(line)?.[2] ?? ""));

// Where the run of a character at the end of a text begins.
function endBefore(text, char) {
  let end = text.length;
  while (end > 0 && text[end - 1] === char) end -= 1;
  return end;
}

function expandTabs(line) {
  return line.replace(/^[ \t]+/, (space) => {
    let width = 0;
    for (const char of space) width += char === "\t" ? 4 - (width % 4) : 1;
    return " ".repeat(width);
  });
}

const isBlank = (line) => line.trim() === "";
const indentOf = (line) => line.length - line.trimStart().length;
const isRule = (line) => indentOf(line) < 4 && RULE.test(line.replace(/[ \t]/g, ""));
const headingOf = (level) => `h${Math.min(level + SHIFT, DEEPEST)}`;
const addText = (element, text, page) => page.texts.push([element, text]);

function append(parent, name) {
  const element = document.createElement(name);
  parent.append(element);
  return element;
}
