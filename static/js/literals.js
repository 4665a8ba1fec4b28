// Writes a text as a literal of each language. A JSON string is a literal of Python and TypeScript too, except for
// characters beyond ASCII.

export const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export const literal = (text) => ascii(JSON.stringify(text));

export const pythonLiteral = (text) =>
  JSON.stringify(text).replace(/[\u007f-\u{10ffff}]/gu, (one) => {
    const point = one.codePointAt(0);
    return point > 0xffff ? `\\U${hex(point, 8)}` : `\\u${hex(point, 4)}`;
  });

// A JSON text with its line breaks: as an object literal of TypeScript (`ascii`), and as a string of Python.
export const ascii = (json) => json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`);
export const pythonJson = (json) => `r'''${ascii(json).replaceAll("'''", "\\u0027\\u0027\\u0027")}'''`;

const hex = (number, digits) => number.toString(16).padStart(digits, "0");
