// Marks comments, strings, numbers and keywords of program text. `kit/highlight.py` has the same table and rules, and
// explains why their time is linear.
const STRING_CHARS = 300;
const HASH = String.raw`(?<![\w$&{])#[^\n]*`;
const SLASHES = String.raw`//[^\n]*|/\*[\s\S]*?(?:\*/|(?![\s\S]))`;
const DASHES = String.raw`--[^\n]*`;
const TRIPLE = String.raw`"""[\s\S]*?(?:"""|(?![\s\S]))`;

// Names, the pattern of a comment, the quotes of strings of one line, and keywords.
const LANGUAGES = [
  [
    "python py",
    `${TRIPLE}|${HASH}`,
    "\"'",
    "and as assert async await break case class continue def del elif else except False finally for from global if import in is lambda match None nonlocal not or pass raise return True try while with yield",
  ],
  [
    "javascript js jsx mjs typescript ts tsx",
    SLASHES,
    "\"'`",
    "async await break case catch class const continue default delete do else enum export extends false finally for from function if implements import in instanceof interface let new null of private public readonly return static super switch this throw true try type typeof undefined var void while yield",
  ],
  [
    "rust rs",
    SLASHES,
    "\"",
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  ],
  [
    "c cpp c++ h hpp java kotlin kt go golang csharp cs swift php scala dart",
    SLASHES,
    "\"'`",
    "abstract auto bool boolean break byte case catch chan char class const continue default defer do double else enum extends extern false final finally float for func fun go goto if implements import in int interface internal let long map namespace new nil null nullptr override package private protected public range return select short signed sizeof static string struct super switch template this throw throws true try type typedef union unsigned using val var virtual void volatile when while",
  ],
  [
    "shell sh bash zsh console",
    HASH,
    "\"'",
    "case do done elif else esac export fi for function if in local return set then unset until while",
  ],
  [
    "ruby rb",
    HASH,
    "\"'`",
    "and begin class def do else elsif end false if in module nil not or require rescue return self super then true unless until when while yield",
  ],
  [
    "sql",
    DASHES,
    "\"'",
    "add all alter and as asc begin between by case check commit create delete desc distinct drop else end exists false from group having in index inner insert into is join key left like limit not null offset on or order outer primary references returning right rollback select set table then true union unique update using values view when where with",
  ],
  [
    "json yaml yml toml ini",
    HASH,
    "\"'",
    "true false null",
  ],
];
const IN_ANY_CASE = new Set(["sql"]);
const scanners = new Map();

// Append program text to an element; text of a language that is not in the table is not marked.
export function appendCode(element, text, language) {
  const name = language.toLowerCase();
  const scanner = scannerOf(name);
  let end = 0;
  for (const match of scanner ? text.matchAll(scanner.pattern) : []) {
    const kind = kindOf(match, scanner.keywords, IN_ANY_CASE.has(name));
    if (!kind) continue;
    const mark = document.createElement("span");
    mark.className = `code-${kind}`;
    mark.textContent = match[0];
    if (match.index > end) element.append(text.slice(end, match.index));
    element.append(mark);
    end = match.index + match[0].length;
  }
  if (end < text.length) element.append(text.slice(end));
}

function kindOf({ 0: text, groups }, keywords, isInAnyCase) {
  if (groups.word === undefined) return ["comment", "string", "number"].find((kind) => groups[kind] !== undefined);
  return keywords.has(isInAnyCase ? text.toLowerCase() : text) ? "keyword" : "";
}

function scannerOf(name) {
  const row = scanners.has(name) ? null : LANGUAGES.find(([names]) => names.split(" ").includes(name));
  if (row) {
    const [, comment, quotes, keywords] = row;
    const strings = [...quotes].map((quote) => String.raw`${quote}(?:[^${quote}\\\n]|\\[^\n]){0,${STRING_CHARS}}${quote}`);
    const pattern = `(?<comment>${comment})|(?<string>${strings.join("|")})|(?<word>[A-Za-z_]\\w*)|(?<number>\\d[\\w.]*)`;
    scanners.set(name, { pattern: new RegExp(pattern, "g"), keywords: new Set(keywords.split(" ")) });
  }
  return scanners.get(name);
}
