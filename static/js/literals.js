// A text as a literal of each language. A JSON text is one of Python and of TypeScript alike, but for what lies beyond ASCII.

export const shell = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export const literal = (text) => ascii(JSON.stringify(text));

export const pythonLiteral = (text) =>
  JSON.stringify(text).replace(/[\u007f-\u{10ffff}]/gu, (one) => {
    const point = one.codePointAt(0);
    return point > 0xffff ? `\\U${hex(point, 8)}` : `\\u${hex(point, 4)}`;
  });

// JSON as it was written, line by line: an object of TypeScript as it is, a string of Python.
export const ascii = (json) => json.replace(/[\u007f-\uffff]/g, (unit) => `\\u${hex(unit.charCodeAt(0), 4)}`);
export const pythonJson = (json) => `r'''${ascii(json).replaceAll("'''", "\\u0027\\u0027\\u0027")}'''`;

const hex = (number, digits) => number.toString(16).padStart(digits, "0");
