"""Scripts that look for faults in the layout of a page; each returns the first few."""

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
