// Canonical JSON of AGNT, as the hub writes it: keys in the order of code points, no spaces, only ASCII, and numbers as
// Python writes them. Numbers are read as they are written in the text: 7.0 is not 7.

// Matches the strings and numbers of a JSON text; a string before a colon is a key.
const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*/g;
const IS_WHOLE = /^-?\d+$/;
const MIN_POWER = -4; // below it, and from MAX_POWER on, a number has an exponent
const MAX_POWER = 16;

class JsonNumber {
  constructor(text) {
    this.text = text;
  }
}

// The value of a JSON text, to be written by `writeCanonical`. Throws a SyntaxError.
export function parseJson(text) {
  JSON.parse(text);
  // The third argument of a reviver has the number as it was written, but only in new browsers.
  const marked = text.replace(TOKENS, (token, string, colon) => {
    if (string === undefined) return `"n${token}"`;
    return colon ? token : `"s${string.slice(1)}`;
  });
  return JSON.parse(marked, (_, value) => (typeof value === "string" ? unmark(value) : value));
}

function unmark(text) {
  return text[0] === "n" ? new JsonNumber(text.slice(1)) : text.slice(1);
}

export function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof JsonNumber);
}

// Throws a RangeError for a number that Python's JSON does not accept, such as 1e999.
export function writeCanonical(value) {
  if (value instanceof JsonNumber) return writeNumber(value.text);
  if (typeof value === "number") return writeNumber(String(value));
  if (typeof value === "string") return writeText(value);
  if (Array.isArray(value)) return `[${value.map(writeCanonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort(compareCodePoints);
  return `{${keys.map((key) => `${writeText(key)}:${writeCanonical(value[key])}`).join(",")}}`;
}

export function writeText(text) {
  const escape = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, escape);
}

function writeNumber(text) {
  if (IS_WHOLE.test(text)) return text === "-0" ? "0" : text;
  const number = Number(text);
  if (!Number.isFinite(number)) throw new RangeError(`${text} is too large for a number`);
  const [digits, exponent] = Math.abs(number).toExponential().split("e");
  const power = Number(exponent);
  const sign = number < 0 || Object.is(number, -0) ? "-" : "";
  if (power < MIN_POWER || power >= MAX_POWER) {
    return `${sign}${digits}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const plain = String(Math.abs(number));
  return `${sign}${plain}${plain.includes(".") ? "" : ".0"}`;
}

// `sort()` compares UTF-16 units; by code points an emoji comes after all characters of the Basic Multilingual Plane.
function compareCodePoints(left, right) {
  const [a, b] = [[...left], [...right]];
  const at = a.findIndex((char, index) => char !== b[index]);
  if (at === -1) return a.length - b.length;
  return a[at].codePointAt(0) - (b[at]?.codePointAt(0) ?? -1);
}
