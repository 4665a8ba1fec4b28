// What is inside a line of Markdown, as nodes: code, links, emphasis, breaks. See `markdown.js`.
const SCHEMES = new Set(["http:", "https:", "mailto:"]);
const REL = "nofollow noopener ugc";
const MAX_DEPTH = 20;
const MAX_DESTINATION_CHARS = 2048;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const NAMES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", hellip: "…", mdash: "—", ndash: "–" };
const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi;
const AUTOLINK = /^<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*)>/i;
const MAIL = /^<([\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*)>/i;
const STOPS = /[\\`*_~[\]<&\n]/g;

export function renderInline(text) {
  return new Reader(text).read();
}

class Reader {
  #text;
  #at = 0;
  #nodes = []; // what came so far: nodes, and runs {mark, count, opens, closes} of characters that may be emphasis
  #brackets = []; // open ones: where each is among the nodes
  #unclosed = new Set(); // lengths of runs of backticks that nothing closes from here on

  constructor(text) {
    this.#text = text;
  }

  read() {
    while (this.#at < this.#text.length) this.#step();
    return emphasised(this.#nodes);
  }

  #step() {
    STOPS.lastIndex = this.#at;
    const stop = STOPS.exec(this.#text)?.index ?? this.#text.length;
    if (stop > this.#at) return this.#add(this.#text.slice(this.#at, stop), stop - this.#at);
    const mark = this.#text[this.#at];
    if (mark === "`") this.#readCode();
    else if (mark === "*" || mark === "_" || mark === "~") this.#readRun(mark);
    else if (mark === "[") this.#openBracket();
    else if (mark === "]") this.#closeBracket();
    else if (mark === "\\") this.#readEscape();
    else if (mark === "\n") this.#readBreak();
    else if (mark === "<") this.#readAutolink();
    else this.#readEntity();
  }

  #add(node, chars) {
    this.#nodes.push(typeof node === "string" ? document.createTextNode(node) : node);
    this.#at += chars;
  }

  #readEscape() {
    const next = this.#text[this.#at + 1] ?? "";
    if (next === "\n") this.#add(document.createElement("br"), 2);
    else if (/[!-/:-@[-`{-~]/.test(next)) this.#add(next, 2);
    else this.#add("\\", 1);
  }

  #readBreak() {
    const last = this.#nodes.at(-1);
    const isHard = last instanceof Text && last.data.endsWith("  ");
    if (last instanceof Text) last.data = last.data.trimEnd();
    this.#add(isHard ? document.createElement("br") : "\n", 1);
  }

  #readCode() {
    const run = /^`+/.exec(this.#text.slice(this.#at))[0];
    const begin = this.#at + run.length;
    const end = this.#unclosed.has(run.length) ? -1 : this.#findRun(run, begin);
    if (end < 0) {
      this.#unclosed.add(run.length);
      return this.#add(run, run.length);
    }
    let code = this.#text.slice(begin, end).replaceAll("\n", " ");
    if (code.startsWith(" ") && code.endsWith(" ") && code.trim()) code = code.slice(1, -1);
    this.#add(wrapped("code", [document.createTextNode(code)]), end + run.length - this.#at);
  }

  #findRun(run, from) {
    for (const { index, 0: found } of this.#text.slice(from).matchAll(/`+/g)) {
      if (found.length === run.length) return from + index;
    }
    return -1;
  }

  #readRun(mark) {
    let end = this.#at;
    while (this.#text[end] === mark) end += 1;
    const count = end - this.#at;
    const [before, after] = [this.#text[this.#at - 1] ?? " ", this.#text[end] ?? " "];
    const isLeft = flanks(after, before);
    const isRight = flanks(before, after);
    const isWord = mark === "_";
    const opens = isLeft && (!isWord || !isRight || PUNCTUATION.test(before));
    const closes = isRight && (!isWord || !isLeft || PUNCTUATION.test(after));
    const isRun = mark !== "~" || count === 2;
    if (isRun && (opens || closes)) this.#nodes.push({ mark, count, whole: count, opens, closes });
    else this.#nodes.push(document.createTextNode(mark.repeat(count)));
    this.#at = end;
  }

  #openBracket() {
    this.#brackets.push(this.#nodes.length);
    this.#add("[", 1);
  }

  #closeBracket() {
    const begin = this.#brackets.pop();
    const target = begin === undefined ? null : readTarget(this.#text, this.#at + 1);
    const address = target && safeAddress(target.address);
    if (address === null) return this.#add("]", 1);
    const label = emphasised(this.#nodes.splice(begin).slice(1));
    this.#brackets = [];
    this.#add(linked(address, label, target.title), target.end - this.#at);
  }

  #readAutolink() {
    const rest = this.#text.slice(this.#at, this.#at + MAX_DESTINATION_CHARS);
    const [all, address] = AUTOLINK.exec(rest) ?? MAIL.exec(rest) ?? [];
    const safe = all && safeAddress(AUTOLINK.test(all) ? address : `mailto:${address}`);
    if (safe) this.#add(linked(safe, [document.createTextNode(address)]), all.length);
    else this.#add("<", 1);
  }

  #readEntity() {
    const [all] = this.#text.slice(this.#at, this.#at + 12).match(/^&[^;]*;/) ?? ["&"];
    this.#add(decoded(all), all.length);
  }
}

const decoded = (text) =>
  text.replace(ENTITY, (all, decimal, hex, name) => {
    const code = Number(decimal ?? `0x${hex ?? 0}`);
    const isPoint = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code < 0xe000);
    return NAMES[name] ?? (isPoint ? String.fromCodePoint(code) : all);
  });

// Whether a run begins (or, the other way round, ends) a word.
const flanks = (inside, outside) => !/\s/.test(inside) && (!PUNCTUATION.test(inside) || /\s/.test(outside) || PUNCTUATION.test(outside));

// `(address "title")` from a place on: {address, title, end}, or null.
function readTarget(text, from) {
  const found = /^\(\s*(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))(?:\s+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))?\s*\)/.exec(
    text.slice(from, from + MAX_DESTINATION_CHARS),
  );
  if (!found) return null;
  const plain = (value) => decoded(value.replace(/\\([!-/:-@[-`{-~])/g, "$1"));
  return { address: plain(found[1] ?? found[2]), title: plain((found[3] ?? "").slice(1, -1)), end: from + found[0].length };
}

// An address to link to, or null of one that leads elsewhere than to a page or a mail.
function safeAddress(address) {
  const isAddress = URL.canParse(address, location.href);
  return isAddress && SCHEMES.has(new URL(address, location.href).protocol) ? address : null;
}

function linked(address, label, title = "") {
  const link = wrapped("a", label);
  link.setAttribute("href", address);
  if (title) link.title = title;
  link.rel = REL;
  link.target = "_blank";
  return link;
}

// Nodes in which the runs are emphasis where they match, and text where they do not.
function emphasised(nodes) {
  const made = [];
  const bottoms = new Map(); // below these places there is no opener for that kind of closer
  for (const node of nodes) {
    if (node.closes) close(made, node, bottoms);
    if (!node.mark || node.count > 0) made.push(node);
  }
  return made.map((node) => (node.mark ? document.createTextNode(node.mark.repeat(node.count)) : node));
}

function close(made, closer, bottoms) {
  const kind = `${closer.mark}${closer.opens}${closer.whole % 3}`;
  while (closer.count > 0) {
    const at = findOpener(made, closer, bottoms.get(kind) ?? 0);
    if (at < 0) return void bottoms.set(kind, made.length);
    const opener = made[at];
    const used = opener.count >= 2 && closer.count >= 2 ? 2 : 1;
    const inside = made.splice(at + 1).map((node) => (node.mark ? document.createTextNode(node.mark.repeat(node.count)) : node));
    const depth = inside.reduce((most, node) => Math.max(most, (node.depth ?? 0) + 1), 1);
    opener.count -= used;
    closer.count -= used;
    if (opener.count === 0) made.pop();
    if (depth > MAX_DEPTH) for (const node of inside) made.push(node);
    else made.push(Object.assign(wrapped(closer.mark === "~" ? "s" : used === 2 ? "strong" : "em", inside), { depth }));
    for (const [other, bottom] of bottoms) bottoms.set(other, Math.min(bottom, made.length - 1));
  }
}

function findOpener(made, closer, bottom) {
  for (let at = made.length - 1; at >= bottom; at -= 1) {
    const { mark, opens, closes, whole, count } = made[at];
    if (mark !== closer.mark || !opens) continue;
    const isMultiple = (closes || closer.opens) && (whole + closer.whole) % 3 === 0 && (whole % 3 || closer.whole % 3);
    if (!isMultiple && (mark !== "~" || count === closer.count)) return at;
  }
  return -1;
}

function wrapped(kind, nodes) {
  const made = document.createElement(kind);
  for (const node of nodes) made.append(node);
  return made;
}
