// Functions for modules that build parts of a page.

// A size in readable units.
export function inBytes(count) {
  if (count < 1000) return `${count} B`;
  return count < 1e6 ? `${(count / 1e3).toFixed(1)} KB` : `${(count / 1e6).toFixed(1)} MB`;
}

// An element with a class and children.
export function make(kind, className, ...children) {
  const element = document.createElement(kind);
  if (className) element.className = className;
  element.append(...children);
  return element;
}
