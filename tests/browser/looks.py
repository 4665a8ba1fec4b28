"""Scripts that look for faults of a page: each returns the first few, or what a fault is found by."""

# Texts that are painted over each other, without texts of a layer above the page (fixed, sticky), texts for screen
# readers, and texts that a scrolling ancestor cuts off.
OVERLAPS = """() => {
  const layers = new Map();
  const isAbove = (one) => {
    if (!one || one === document.body) return false;
    if (!layers.has(one)) {
      layers.set(one, /fixed|sticky/.test(getComputedStyle(one).position) || isAbove(one.parentElement));
    }
    return layers.get(one);
  };
  const cut = (box, by) => ({
    left: Math.max(box.left, by.left),
    right: Math.min(box.right, by.right),
    top: Math.max(box.top, by.top),
    bottom: Math.min(box.bottom, by.bottom),
  });
  const boxesOf = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const ancestors = [];
    for (let one = node.parentElement; one !== document.body; one = one.parentElement) {
      if (getComputedStyle(one).overflow !== "visible") ancestors.push(one.getBoundingClientRect());
    }
    return [...range.getClientRects()].map((rect) => {
      const {left, right, top, bottom} = ancestors.reduce(cut, rect);
      const space = rect.height / 5;  // above and below the letters
      return {node, left, right, top: top + space, bottom: bottom - space};
    });
  };
  const boxes = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest(".unseen, .visually-hidden, .skip, svg, option, script")) continue;
    if (isAbove(parent) || !parent.checkVisibility({visibilityProperty: true})) continue;
    boxes.push(...boxesOf(node).filter((one) => one.right - one.left > 1 && one.bottom - one.top > 1));
  }
  boxes.sort((a, b) => a.top - b.top);
  const found = [];
  const said = ({node}) => node.data.trim().slice(0, 40);
  boxes.forEach((one, index) => {
    for (let at = index + 1; at < boxes.length && boxes[at].top < one.bottom - 1; at += 1) {
      const other = boxes[at];
      const shared = Math.min(one.right, other.right) - Math.max(one.left, other.left);
      if (one.node !== other.node && shared > 1) found.push([said(one), said(other)]);
    }
  });
  return found.slice(0, 5);
}"""

# Links to an absent place of the page itself.
DEAD_ANCHORS = """() =>
  [...document.querySelectorAll('a[href^="#"]')]
    .map((one) => decodeURIComponent(one.getAttribute("href").slice(1)))
    .filter((id) => !document.getElementById(id))"""

TOO_WIDE = """() => {
  if (document.documentElement.scrollWidth <= innerWidth) return [];
  const all = [...document.querySelectorAll("body *")];
  const wide = all.filter((one) => one.getBoundingClientRect().right > innerWidth);
  return wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 150));
}"""

# Targets smaller than the 24 by 24 pixels of WCAG 2.2 (2.5.8), without links in a sentence, and without inputs
# whose label is that large.
SMALL_TARGETS = """() => {
  const LEAST = 24;
  const isLarge = (one) => {
    const {width, height} = one.getBoundingClientRect();
    return width >= LEAST && height >= LEAST;
  };
  const isInSentence = (one) =>
    one.matches(":is(p, .help, .messagelist, .readonly) a") && getComputedStyle(one).display === "inline";
  const all = document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary");
  const small = [...all].filter((one) => {
    if (!one.checkVisibility({visibilityProperty: true}) || one.getBoundingClientRect().right < 0) return false;
    return !isLarge(one) && !isInSentence(one) && ![...(one.labels ?? [])].some(isLarge);
  });
  const sizeOf = ({width, height}) => `${Math.round(width)} × ${Math.round(height)}: `;
  return small.slice(0, 5).map((one) => sizeOf(one.getBoundingClientRect()) + one.outerHTML.slice(0, 150));
}"""

# What Tab must reach: a group of radio buttons counts once.
REACHABLE = """() => {
  const place = document.querySelector("dialog:modal") ?? document;  // outside of it nothing takes the focus
  const all = place.querySelectorAll(
    'a[href]:not([tabindex="-1"]), button:enabled, input:enabled:not([type=hidden]), select, textarea, summary, ' +
    '[tabindex="0"]');
  const groups = new Set();
  window.reach = new Set([...all].filter((one) => {
    if (!one.checkVisibility({visibilityProperty: true})) return false;
    if (one.type !== "radio") return true;
    const is_new = !groups.has(one.name);
    groups.add(one.name);
    return is_new;
  }));
  const [first] = window.reach;
  first?.focus();  // from here on, also when Tab was used before
  first?.blur();
  const dates = [...window.reach].filter((one) => one.type === "date");
  return window.reach.size + 3 * dates.length;  // day, month, year and the calendar each take a Tab
}"""
# Notes each element that has the focus, and whether it shows it.
NOTE_FOCUS = """() => {
  window.unmarked = [];
  addEventListener("focusin", ({target: one}) => {
    const style = getComputedStyle(one);
    const member = one.type === "radio" ? [...window.reach].find((other) => other.name === one.name) : one;
    window.reach.delete(member);
    const is_marked = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    if (!is_marked) window.unmarked.push(one.outerHTML.slice(0, 200));
  });
}"""
WALKED = """() => ({
  unmarked: window.unmarked,
  is_replaced: [...window.reach].some((one) => !one.isConnected),
  left: [...window.reach].map((one) => one.outerHTML.slice(0, 150)),
})"""

# Of a page and all that it loaded, also from the cache: the bodies as they were sent, and a guess for headers.
WEIGHT = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, {encodedBodySize}) => sum + encodedBodySize + 500, 0)"""

# Rules that depend on colours: between light and dark, `site.css` changes nothing else.
OF_COLOURS = ["color-contrast", "link-in-text-block"]

# Axe by all other rules on the whole page: what it finds, in short.
AXE = """async (rules) => {
  const off = Object.fromEntries(rules.map((rule) => [rule, {enabled: false}]));
  const {violations} = await axe.run(document, {resultTypes: ["violations"], rules: off, preload: false});
  return violations.map(({id, nodes}) => [id, nodes.slice(0, 5).map(({html}) => html)]);
}"""
# Kinds of visible text on a page, by what the rules of colours calculate with: the colour, the grounds below it,
# the size and the weight; what may lie over other grounds than its parent's is told apart by its class. Three
# elements of each kind are kept. A page has thousands of texts of few kinds, most of which other pages have, too.
KINDS_OF_TEXT = """() => {
  const grounds = new Map([[null, ""]]);
  const groundOf = (one) => {
    if (!grounds.has(one)) {
      const {backgroundColor, backgroundImage, opacity, position} = getComputedStyle(one);
      const place = /static|relative/.test(position) ? "" : one.className;
      const own = `${backgroundColor} ${backgroundImage} ${opacity} ${place};`;
      grounds.set(one, (own === "rgba(0, 0, 0, 0) none 1 ;" ? "" : own) + groundOf(one.parentElement));
    }
    return grounds.get(one);
  };
  const is_field = (one) => one.matches("input, textarea, select");
  const has_text = (one) =>
    [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  window.kinds = {};
  for (const one of document.body.querySelectorAll("*")) {
    if (!is_field(one) && !has_text(one) || !one.checkVisibility({visibilityProperty: true})) continue;
    const {color, fontSize, fontWeight, textDecorationLine, textShadow} = getComputedStyle(one);
    const link = one.matches("a") ? getComputedStyle(one.parentElement).color : "";
    const is_off = one.closest(":disabled, [aria-disabled=true]") !== null;  // the rules pass over it
    const letters = [color, fontSize, fontWeight, textDecorationLine, textShadow];
    const kind = [letters, groundOf(one), link, is_field(one), is_off].join();
    window.kinds[kind] ??= [];
    if (window.kinds[kind].length < 3) window.kinds[kind].push(one);
  }
  return Object.keys(window.kinds);
}"""
# Axe by the rules of colours on the texts of some kinds.
AXE_OF_COLOURS = """async ([rules, kinds]) => {
  const include = kinds.flatMap((kind) => window.kinds[kind]).filter((one) => one.isConnected);
  if (!include.length) return [];
  const only = {type: "rule", values: rules};
  const {violations} = await axe.run({include}, {resultTypes: ["violations"], runOnly: only});
  return violations.map(({id, nodes}) => [id, nodes.slice(0, 5).map(({html}) => html)]);
}"""
