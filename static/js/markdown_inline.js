// The inside of a Markdown paragraph: emphasis, code, links and line ends. Time is linear in the text, whatever is in it.
const MAX_DEPTH = 20;
const MAX_LOOKED_BACK = 100; // runs of * or _ that a closing one is compared with
const MAX_LABEL_CHARS = 999;
const MAX_PARENTHESES = 32;
const REL = "nofollow noopener ugc";
const SCHEMES = new Set(["http:", "https:", "mailto:"]);

const PLAIN = /[^\\`*_~[\]<&\n]+/y;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const ADDRESS = /<([a-z][a-z0-9+.-]{1,31}:[^\s<>]*)>/iy;
const MAIL = /<([\w.!#$%&'*+/=?^`{|}~-]{1,64}@[a-z0-9.-]{1,255})>/iy;
const ENTITY = /&(?:#x[0-9a-f]{1,6}|#\d{1,7}|[a-z][a-z0-9]{1,31});/iy;
const ENTITIES_ANYWHERE = new RegExp(ENTITY.source, "gi");
const IN_ANGLES = /<((?:[^<>\\\n]|\\.)*)>/y;
const TITLE = /\s+(?:"((?:[^"\\]|\\[^])*)"|'((?:[^'\\]|\\[^])*)'|\(((?:[^()\\]|\\[^])*)\))/y;
const REFERENCE = /^ {0,3}\[((?:[^[\]\\]|\\.){1,999})\]:[ \t]*(\S+)(?:[ \t]+(?:"([^"]*)"|'([^']*)'|\(([^()]*)\)))?[ \t]*$/;

const TAGS = { 1: "em", 2: "strong" };
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", copy: "©", hellip: "…", ndash: "–", mdash: "—", middot: "·", bull: "•", rarr: "→", larr: "←", times: "×", euro: "€", deg: "°" };

// Append what a text means. `references`: the addresses of `[text][label]`, by their labels.
export function appendInline(parent, text, references) {
  new Reader(text, references).read(parent);
}

// Keep the link that a line defines; gives whether it defines one.
export function readReference(line, references) {
  const found = REFERENCE.exec(line);
  if (!found) return false;
  const [, label, address, ...titles] = found;
  const name = labelOf(label);
  if (!references.has(name)) references.set(name, { address: unescape(address.replace(/^<(.*)>$/, "$1")), title: titles.find(Boolean) });
  return true;
}

class Reader {
  #at = 0;
  #items = []; // nodes, runs of * _ ~, and opening brackets, in their order
  #brackets = []; // where in #items the open ones are

  constructor(text, references) {
    Object.assign(this, { text, references });
  }

  read(parent) {
    while (this.#at < this.text.length) this.#readNext();
    parent.append(emphasize(this.#items));
  }

  #readNext() {
    const plain = this.#match(PLAIN);
    if (plain) return this.#items.push(plain[0]);
    const char = this.text[this.#at];
    const done = this.#read(char);
    if (!done) {
      this.#items.push(char);
      this.#at += 1;
    }
  }

  #read(char) {
    if (char === "\\") return this.#readEscape();
    if (char === "\n") return this.#readLineEnd();
    if (char === "`") return this.#readCode();
    if (char === "<") return this.#readAddress();
    if (char === "&") return this.#readEntity();
    if (char === "[") return this.#readBracket();
    if (char === "]") return this.#readLink();
    return this.#readRun(char);
  }

  #match(pattern) {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.text);
    if (found) this.#at = pattern.lastIndex;
    return found;
  }

  #readEscape() {
    const next = this.text[this.#at + 1] ?? "";
    if (next === "\n") {
      this.#at += 1;
      this.#breakLine();
    } else if (PUNCTUATION.test(next)) {
      this.#items.push(next);
      this.#at += 2;
    } else return false;
    return true;
  }

  #readLineEnd() {
    const before = this.#items.at(-1);
    const isHard = typeof before === "string" && before.endsWith("  ");
    if (typeof before === "string") this.#items[this.#items.length - 1] = before.trimEnd();
    if (isHard) this.#breakLine();
    else {
      this.#items.push("\n");
      this.#at += 1;
    }
    return true;
  }

  #breakLine() {
    this.#items.push(document.createElement("br"), "\n");
    this.#at += 1;
  }

  #readCode() {
    const [mark] = this.#match(/`+/y);
    let end = this.#at;
    for (;;) {
      end = this.text.indexOf(mark, end);
      if (end < 0) return this.#items.push(mark);
      const length = runLength(this.text, end);
      if (length === mark.length) break;
      end += length;
    }
    const inside = this.text.slice(this.#at, end).replaceAll("\n", " ");
    const isPadded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim() !== "";
    const code = document.createElement("code");
    code.textContent = isPadded ? inside.slice(1, -1) : inside;
    this.#items.push(code);
    this.#at = end + mark.length;
    return true;
  }

  #readAddress() {
    const found = this.#match(ADDRESS);
    const mail = found ? null : this.#match(MAIL);
    if (!found && !mail) return false;
    const [whole, text] = found ?? mail;
    const link = makeLink(mail ? `mailto:${text}` : text);
    link?.append(text);
    this.#items.push(link ?? whole);
    return true;
  }

  #readEntity() {
    const found = this.#match(ENTITY);
    if (found) this.#items.push(decodeEntity(found[0]));
    return found !== null;
  }

  #readBracket() {
    this.#brackets.push(this.#items.length);
    this.#items.push({ bracket: true, from: this.#at + 1 });
    this.#at += 1;
    return true;
  }

  #readLink() {
    const index = this.#brackets.pop();
    if (index === undefined) return false;
    const { from } = this.#items[index];
    const begun = this.#at;
    this.#at += 1;
    const target = this.#readTarget() ?? this.#findReference(from, begun);
    const link = target && makeLink(target.address, target.title);
    if (!link) {
      this.#items[index] = "[";
      this.#at = begun;
      return false;
    }
    link.append(emphasize(this.#items.splice(index).slice(1)));
    this.#items.push(link);
    for (const outer of this.#brackets.splice(0)) this.#items[outer] = "["; // no link in a link
    return true;
  }

  // `(address "title")`
  #readTarget() {
    const begun = this.#at;
    if (this.text[this.#at] === "(") {
      this.#at += 1;
      this.#match(/\s*/y);
      const angles = this.#match(IN_ANGLES);
      const address = angles ? angles[1] : this.#readPlainAddress();
      const title = this.#match(TITLE);
      this.#match(/\s*/y);
      if (address !== null && this.text[this.#at] === ")") {
        this.#at += 1;
        return { address: unescape(address), title: title && unescape(title[1] ?? title[2] ?? title[3]) };
      }
    }
    this.#at = begun;
    return null;
  }

  #readPlainAddress() {
    const begun = this.#at;
    let depth = 0;
    for (; this.#at < this.text.length; this.#at += 1) {
      const char = this.text[this.#at];
      if (char <= " " || (char === ")" && depth === 0)) break;
      if (char === "\\") this.#at += 1;
      else if (char === "(") depth += 1;
      else if (char === ")") depth -= 1;
      if (depth > MAX_PARENTHESES) return null;
    }
    return depth === 0 && this.text[begun] !== "<" ? this.text.slice(begun, this.#at) : null;
  }

  // `[label]`, `[]`, or the text of the link itself.
  #findReference(from, end) {
    if (!this.references.size || end - from > MAX_LABEL_CHARS) return undefined;
    const label = this.#match(/\[((?:[^[\]\\]|\\.){0,999})\]/y)?.[1];
    return this.references.get(labelOf(label || this.text.slice(from, end)));
  }

  #readRun(char) {
    const length = runLength(this.text, this.#at);
    const before = [...this.text.slice(Math.max(0, this.#at - 2), this.#at)].at(-1) ?? " ";
    const after = String.fromCodePoint(this.text.codePointAt(this.#at + length) ?? 32);
    this.#items.push(new Run(char, length, before, after));
    this.#at += length;
    return true;
  }
}

// A run of * _ ~ and whether emphasis can begin or end there.
class Run {
  constructor(char, length, before, after) {
    const [isSpaceBefore, isSpaceAfter] = [before, after].map((one) => /\s/.test(one));
    const [isMarkBefore, isMarkAfter] = [before, after].map((one) => /[\p{P}\p{S}]/u.test(one));
    const opens = !isSpaceAfter && (!isMarkAfter || isSpaceBefore || isMarkBefore);
    const closes = !isSpaceBefore && (!isMarkBefore || isSpaceAfter || isMarkAfter);
    const canOpen = char === "_" ? opens && (!closes || isMarkBefore) : opens;
    const canClose = char === "_" ? closes && (!opens || isMarkAfter) : closes;
    Object.assign(this, { char, length, total: length, canOpen, canClose });
  }

  fits(opener) {
    if (opener.char !== this.char) return false;
    if (this.char === "~") return opener.length >= 2 && this.length >= 2;
    const isEither = (opener.canOpen && opener.canClose) || (this.canOpen && this.canClose);
    return !isEither || (opener.total + this.total) % 3 !== 0 || (opener.total % 3 === 0 && this.total % 3 === 0);
  }

  toString() {
    return this.char.repeat(this.length);
  }
}

// The nodes that some items mean.
function emphasize(items) {
  const now = { out: [], openers: [], depths: new Map(), isFull: false }; // openers: where in `out` they are
  for (const item of items) {
    if (!(item instanceof Run)) now.out.push(item.bracket ? "[" : item);
    else {
      while (item.canClose && item.length > 0 && close(item, now));
      if (item.length > 0) {
        if (item.canOpen) now.openers.push(now.out.length);
        now.out.push(item);
      }
    }
  }
  return joined(now.out);
}

// Wrap what is between a run and the one that opens it; gives whether there is one.
function close(run, now) {
  const { out, openers, depths } = now;
  const last = openers.length - 1;
  for (let nth = last; !now.isFull && nth >= 0 && nth > last - MAX_LOOKED_BACK; nth -= 1) {
    const opener = out[openers[nth]];
    if (!run.fits(opener)) continue;
    const children = out.splice(openers[nth] + 1);
    const depth = children.reduce((most, one) => Math.max(most, depths.get(one) ?? 0), 0) + 1;
    const count = run.char === "~" ? 2 : Math.min(opener.length, run.length, 2);
    opener.length -= count;
    run.length -= count;
    if (opener.length === 0) out.pop();
    openers.length = opener.length === 0 ? nth : nth + 1;
    const element = document.createElement(run.char === "~" ? "s" : TAGS[count]);
    element.append(joined(children));
    depths.set(element, depth);
    out.push(element);
    now.isFull = depth >= MAX_DEPTH; // what follows is shown as it is written
    return true;
  }
  return false;
}

// Nodes, and texts beside each other as one.
function joined(items) {
  const fragment = document.createDocumentFragment();
  let text = "";
  for (const item of items) {
    if (!(item instanceof Node)) text += item;
    else {
      if (text) fragment.append(text);
      fragment.append(item);
      text = "";
    }
  }
  if (text) fragment.append(text);
  return fragment;
}

// A link to an address whose scheme is allowed, or null.
function makeLink(address, title) {
  if (!URL.canParse(address, document.baseURI) || !SCHEMES.has(new URL(address, document.baseURI).protocol)) return null;
  const link = document.createElement("a");
  Object.assign(link, { href: address, rel: REL });
  if (title) link.title = title;
  return link;
}

function runLength(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

const labelOf = (text) => text.trim().replace(/\s+/g, " ").toLowerCase();

const unescape = (text) => text.replace(/\\([!-/:-@[-`{-~])/g, "$1").replace(ENTITIES_ANYWHERE, decodeEntity);

function decodeEntity(entity) {
  const name = entity.slice(1, -1);
  if (name[0] !== "#") return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : entity;
  const code = /^#x/i.test(name) ? parseInt(name.slice(2), 16) : Number(name.slice(1));
  const isChar = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  return isChar ? String.fromCodePoint(code) : "\ufffd";
}
