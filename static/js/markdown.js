// Markdown of untrusted authors as elements, by the rules of `kit/markdown.py` (docs/adr/0111): HTML is text, images are
// links, headings begin at h3. Blocks are here, what is inside a line in `markdown_inline.js`. A browser test compares both
// renderers. Reference links are not known here. Each line is looked at once for each level, and there are at most 20 levels.
import { renderInline } from "./markdown_inline.js";

const MAX_CHARS = 100_000;
const MAX_LEVELS = 20;
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?=[ \t]|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-+*]|(\d{1,9})[.)])(?:( +)(?=\S)|\s*$)/;
const DELIMITER = /^:?-+:?$/;

// A text that grows, in an element: what did not change since the last `show` keeps its elements.
export class MarkdownView {
  #shown = [];

  constructor(element) {
    this.element = element;
  }

  show(text) {
    const blocks = blocksOf(linesOf(text.slice(0, MAX_CHARS)), 0);
    if (text.length > MAX_CHARS) blocks.push({ kind: "plain", lines: [text.slice(MAX_CHARS)] });
    const same = blocks.findIndex((block, index) => keyOf(block) !== this.#shown[index]?.key);
    const kept = same < 0 ? blocks.length : same;
    for (const { node } of this.#shown.splice(kept)) node.remove();
    for (const block of blocks.slice(kept)) {
      const node = build(block, 0);
      this.#shown.push({ key: keyOf(block), node });
      this.element.append(node);
    }
  }
}

const keyOf = ({ kind, lines }) => `${kind}\n${lines.join("\n")}`;
const isBlank = (line) => !line.trim();
const indentOf = (line) => line.length - line.trimStart().length;

// Tabs count as spaces before a text, and stay in fenced code.
function linesOf(text) {
  let fence = "";
  return text
    .replaceAll("\0", "")
    .split(/\r\n|\r|\n/)
    .map((line) => {
      if (fence) fence = isRun(line.trim(), fence) ? "" : fence;
      else fence = FENCE.exec(line.trimStart())?.[1] ?? "";
      return fence ? line : spaced(line);
    });
}

function spaced(line) {
  const indent = /^[ \t]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)?/.exec(line)[0];
  if (!indent.includes("\t")) return line;
  let width = 0;
  const wide = indent.replace(/[^]/g, (one) => {
    const shown = one === "\t" ? " ".repeat(4 - (width % 4)) : one;
    width += shown.length;
    return shown;
  });
  return wide + line.slice(indent.length);
}

// The blocks of lines, in their order: {kind, lines, …}.
function blocksOf(lines, level) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) at += 1;
    else {
      const block = level < MAX_LEVELS ? readBlock(lines, at) : { kind: "plain", lines: lines.slice(at) };
      blocks.push(block);
      at += block.count ?? block.lines.length;
    }
  }
  return blocks;
}

function readBlock(lines, at) {
  const line = lines[at];
  if (indentOf(line) >= 4) return readIndented(lines, at);
  const fence = FENCE.exec(line);
  if (fence) return readFenced(lines, at, fence[1]);
  if (HEADING.test(line)) return { kind: "heading", lines: [line] };
  if (RULE.test(line)) return { kind: "rule", lines: [line] };
  if (QUOTE.test(line)) return { kind: "quote", lines: linesWithLazy(lines, at, (each) => QUOTE.test(each)) };
  if (ITEM.test(line)) return readList(lines, at);
  return readTable(lines, at) ?? readParagraph(lines, at);
}

function readIndented(lines, at) {
  let end = at;
  while (end < lines.length && (isBlank(lines[end]) || indentOf(lines[end]) >= 4)) end += 1;
  while (isBlank(lines[end - 1])) end -= 1;
  return { kind: "code", lines: lines.slice(at, end), code: lines.slice(at, end).map((each) => each.slice(4)) };
}

function readFenced(lines, at, fence) {
  const indent = indentOf(lines[at]);
  const isEnd = (line) => indentOf(line) < 4 && isRun(line.trim(), fence);
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end])) end += 1;
  const code = lines.slice(at + 1, end).map((each) => each.slice(Math.min(indent, indentOf(each))));
  return { kind: "code", lines: lines.slice(at, Math.min(end + 1, lines.length)), code };
}

const isRun = (text, fence) => text.length >= fence.length && text === fence[0].repeat(text.length);

// The lines from `at` on that belong to a block, and those that continue a paragraph at its end.
function linesWithLazy(lines, at, belongs) {
  let end = at + 1;
  while (end < lines.length && (belongs(lines[end]) || continues(lines, end))) end += 1;
  return lines.slice(at, end);
}

// Whether a line goes on with the paragraph that the line before may be of.
function continues(lines, at) {
  const inner = lines[at - 1].replace(/^(?: {0,3}>)+ ?/, "");
  return !isBlank(lines[at]) && !isBlank(inner) && !interrupts(lines[at]) && !FENCE.test(inner) && !HEADING.test(inner) && !RULE.test(inner);
}

// Whether a line ends the paragraph before it.
function interrupts(line) {
  const item = ITEM.exec(line);
  const isItem = item && item[4] && (item[3] === undefined || Number(item[3]) === 1);
  return isItem || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
}

function readList(lines, at) {
  const mark = (line) => ITEM.exec(line)?.[2].at(-1);
  const [kind, items] = [mark(lines[at]), []];
  let end = at;
  let isLoose = false;
  while (end < lines.length && mark(lines[end]) === kind && !RULE.test(lines[end])) {
    const [own, isFollowed] = readItem(lines, end);
    items.push(own.map((line, index) => line.slice(index ? Math.min(own.width, indentOf(line)) : own.width)));
    end += own.length;
    const next = end;
    while (end < lines.length && isBlank(lines[end])) end += 1;
    const goesOn = end < lines.length && mark(lines[end]) === kind && !RULE.test(lines[end]);
    isLoose ||= isFollowed || (goesOn && end > next);
    if (!goesOn) {
      end = next;
      break;
    }
  }
  return { kind: "list", lines: lines.slice(at, end), items, isLoose, start: ITEM.exec(lines[at])[3] };
}

// The lines of one item, with the `width` of its marker; whether a blank line is between two blocks of it.
function readItem(lines, at) {
  const [all, indent, marker, , space = ""] = ITEM.exec(lines[at]);
  const width = space.length > 4 || !space ? indent.length + marker.length + 1 : all.length;
  let end = at + 1;
  let isFollowed = false;
  for (let blanks = 0; end + blanks < lines.length; ) {
    const line = lines[end + blanks];
    if (isBlank(line)) blanks += 1;
    else if (indentOf(line) >= width) {
      isFollowed ||= blanks > 0 && indentOf(line) < width + 2;
      end += blanks + 1;
      blanks = 0;
    } else if (!blanks && !ITEM.test(line) && continues(lines, end)) end += 1;
    else break;
  }
  return [Object.assign(lines.slice(at, end), { width }), isFollowed];
}

function readTable(lines, at) {
  if (!lines[at].includes("|") || !/^ {0,3}[|:-]/.test(lines[at + 1] ?? "")) return null;
  const [columns, delimiters] = [cellsOf(lines[at]).length, cellsOf(lines[at + 1])];
  if (delimiters.length !== columns || !delimiters.every((cell) => DELIMITER.test(cell))) return null;
  let end = at + 2;
  while (end < lines.length && !isBlank(lines[end]) && indentOf(lines[end]) < 4 && !interrupts(lines[end])) end += 1;
  return { kind: "table", lines: lines.slice(at, end), columns };
}

const cellsOf = (line) =>
  line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

function readParagraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end])) {
    if (UNDERLINE.test(lines[end])) return { kind: "underlined", lines: lines.slice(at, end + 1) };
    if (interrupts(lines[end]) || readTable(lines, end)) break;
    end += 1;
  }
  return { kind: "paragraph", lines: lines.slice(at, end) };
}

const BUILDERS = {
  heading: ({ lines }) => {
    const [begin, marks] = HEADING.exec(lines[0]);
    const text = lines[0].slice(begin.length).trim().replace(/(^|[ \t])#+$/, "");
    return lined(`h${Math.min(marks.length + 2, 6)}`, text.trim());
  },
  underlined: ({ lines }) => lined(lines.at(-1).trim()[0] === "=" ? "h3" : "h4", joined(lines.slice(0, -1))),
  rule: () => element("hr"),
  quote: ({ lines }, level) => element("blockquote", buildAll(lines.map((line) => line.replace(QUOTE, "")), level + 1)),
  list: buildList,
  table: buildTable,
  paragraph: ({ lines }) => lined("p", joined(lines)),
  plain: ({ lines }) => element("p", [lines.join("\n")]),
  code: ({ code }) => {
    const pre = element("pre", [element("code", code.length ? [`${code.join("\n")}\n`] : [])]);
    pre.tabIndex = 0;
    return pre;
  },
};

const build = (block, level) => BUILDERS[block.kind](block, level);
const buildAll = (lines, level) => blocksOf(lines, level).map((block) => build(block, level));
const joined = (lines) => lines.map((line) => line.trimStart()).join("\n").trimEnd();

function buildList({ items, isLoose, start }, level) {
  const list = element(start === undefined ? "ul" : "ol");
  if (start !== undefined && Number(start) !== 1) list.setAttribute("start", String(Number(start)));
  for (const lines of items) {
    const parts = blocksOf(lines, level + 1).map((one) => {
      const built = build(one, level + 1);
      return one.kind === "paragraph" && !isLoose ? [...built.childNodes] : [built];
    });
    list.append(element("li", parts.flat()));
  }
  return list;
}

function buildTable({ lines, columns }) {
  const row = (line, kind) => {
    const cells = cellsOf(line);
    return element("tr", Array.from({ length: columns }, (_, index) => lined(kind, cells[index] ?? "")));
  };
  const rows = lines.slice(2).map((line) => row(line, "td"));
  const head = element("thead", [row(lines[0], "th")]);
  return element("table", rows.length ? [head, element("tbody", rows)] : [head]);
}

function element(kind, children = []) {
  const made = document.createElement(kind);
  for (const child of children) made.append(child);
  return made;
}

const lined = (kind, text) => element(kind, renderInline(text));
