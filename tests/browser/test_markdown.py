"""Markdown in the browser: the elements are those that `kit.markdown` makes of the same text."""

import json

from kit.markdown import to_html
from tests.browser.chrome import IN_BROWSER
from tests.browser.vectors import VECTORS
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER

SAMPLES = [
    "One line,\nand another.  \nA break, and\\\nanother.\n\nA second paragraph.",
    "# One\n## Two ##\n###### Six\n#no\n#\nFoo *bar*\n===\nBaz\n---\n",
    "*a* **b** ***c*** _d_ __e__ ~~f~~ a*b*c a_b_c **a *b* c** *a **b** c* **a* 2 * 3 * 4 \\*x\\* ~g~",
    "`a` ``b ` c`` ` d ` `<b>` `unclosed *e*",
    "```python\nif a < b:\n\n    print('x')\n```\nafter\n~~~\n```\n~~~\n\n    indented\n\n    code\n\nend",
    "```make\nall:\n\tcc a.c\n```\n\n```\nnever closed\n\n# not a heading",
    "- a\n- b\n  - c\n    - d\n- e\n\n+ other\n\n1. one\n2. two\n   more\n3. three\n\n7) seven\n8) eight",
    "1. First:\n\n   ```sh\n   make\n   ```\n\n2. Second\n\n   - x\n   - y\n",
    "- a\n\n- b\nlazy\n\ntext\n- [x] done\n-\n- after an empty one",
    "> quoted\n> more\nlazy\n>\n> > twice\n> - item\n\nafter",
    "| a | b |\n|---|:-:|\n| 1 | `x` **y** |\n| only one |\n| 1 \\| 2 | 3 | 4 |\n\nafter",
    "before\n| a |\n|---|\n| b |\n# end\na | b\n--- | ---\n",
    "[x](https://example.org/a_b_c?d=1&amp;e=2 'title') [y](<https://example.org/1>) [z](/desk)",
    "[](mailto:a@b.example) [v](ht*p) *[w](https://example.org)*",
    "[a [b](https://example.org) c](https://example.com) [no link] [x] (y) ![image](https://example.org/x.png)",
    "<https://example.org/?a=b> <a@b.example> <b>bold</b> <!-- no -->",
    "&lt;i&gt; &amp;amp; &#35; &#x23; &nosuch; a < b & c",
    "a\n***\nb\n\n* * *\n___\n- - -\n",
    "ü **ñ**ö «*x*» \U0001f600 **\U0001f600** 中文**强调**中文",
    "\tcode by a tab\n\n-\ttabbed item\n\n1986\\. A great year\n14. begins\n",
    "Text\n1. list at once\n2. goes on\n\nText\n2. no list",
]
DIFFERENCES = """async (cases) => {
  const { MarkdownView } = await import("/static/js/markdown.js");
  const INLINE = "p, h3, h4, h5, h6, td, th, a, em, strong, s";
  const textsOf = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    return texts.filter((text) => !text.parentElement.closest("pre"));
  };
  const plain = (root) => {
    root.normalize();
    for (const text of textsOf(root)) {
      if (!text.data.trim() && !text.parentElement.closest(INLINE)) text.data = "";
      if (text.previousSibling?.tagName === "BR") text.data = text.data.trimStart();
    }
    for (const link of root.querySelectorAll("a")) link.removeAttribute("target");
    return root.innerHTML
      .replaceAll("\\n</code></pre>", "</code></pre>")
      .replace(/\\n?(<\\/?(ul|ol|li|blockquote|p|pre|table)\\b)/g, "$1");
  };
  return cases.map(([text, wanted]) => {
    const shown = document.createElement("div");
    const view = new MarkdownView(shown);
    for (let end = 0; end < text.length; end += 7) view.show(text.slice(0, end));
    view.show(text);
    const template = document.createElement("div");
    template.append(...new DOMParser().parseFromString(wanted, "text/html").body.childNodes);
    return [text, plain(template), plain(shown)];
  }).filter(([, wanted, shown]) => wanted !== shown);
}"""
SHOW = """async (text) => {
  const { MarkdownView } = await import("/static/js/markdown.js");
  const shown = document.createElement("div");
  new MarkdownView(shown).show(text);
  document.querySelector("main").replaceChildren(shown);
}"""
COUNT = """async (text) => {
  const { MarkdownView } = await import("/static/js/markdown.js");
  const shown = document.createElement("div");
  new MarkdownView(shown).show(text);
  return shown.querySelectorAll("*").length;
}"""
HOSTILE = [
    "[" * 50_000,
    "[](" * 33_000,
    "*a " * 33_000,
    "**a_b~~" * 14_000,
    "> " * 50_000,
    "- " * 50_000,
    "`" * 300 + "".join("`" * (n % 400) + "x" for n in range(400)),
    "# " + " " * 90_000 + "x",
    "|" * 50_000 + "\n" + "|-" * 25_000,
    "a\n|-|\n" * 14_000,
    "- a\n" * 25_000,
    "<a@" * 33_000,
    "&#" * 50_000,
]


async def test_both_renderers_agree(visitor: Visitor) -> None:
    await visitor.go("/")
    found = await visitor.page.evaluate(DIFFERENCES, [[text, to_html(text)] for text in SAMPLES])
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


async def test_nothing_of_a_text_runs(visitor: Visitor) -> None:
    await visitor.go("/")
    for vector in VECTORS:
        await visitor.page.evaluate(SHOW, f"{vector}\n\n{vector}")
        links = await visitor.page.evaluate("[...document.querySelectorAll('main a')].map((one) => one.protocol)")
        assert set(links) <= {"http:", "https:", "mailto:"}, vector
        kinds = await visitor.page.evaluate("[...document.querySelectorAll('main *')].map((one) => one.localName)")
        assert set(kinds) <= {"div", "p", "a", "em", "strong", "s", "code", "pre", "br"}, vector
    await visitor.check_calm()


async def test_a_hostile_text_is_shown_in_bounded_steps(visitor: Visitor) -> None:
    """By the number of elements, and in the time that a test has."""
    await visitor.go("/")
    for text in HOSTILE:
        count = await visitor.page.evaluate(COUNT, text)
        assert count <= len(text) + 10, text[:20]
