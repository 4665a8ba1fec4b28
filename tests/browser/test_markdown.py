"""Markdown that a page's script renders: the elements of the hub's own renderer, and nothing that runs."""

from html.parser import HTMLParser
from typing import Any

import pytest
import pytest_asyncio

from kit.highlight import LANGUAGES
from kit.markdown import ALLOWED_CLASSES, MAX_CHARS, TAGS, to_html
from tests.attempts import Attempts
from tests.browser.chrome import IN_BROWSER
from tests.browser.vectors import VECTORS
from tests.browser.visitor import Visitor

pytestmark = IN_BROWSER

AROUND = ["{}", "# {}", "- {}\n- {}", "> {}", "**{}**", "[{}](https://e.org)", "[x]({})", "| {} |\n|-:|\n| {} |"]
AROUND += ["- [x] {}", "```py\n{}\n```"]
VECTORS_AROUND = [around.replace("{}", vector) for vector in VECTORS for around in AROUND]
MAX_CELLS = 10_000  # of `markdown.js`
HOSTILE = [
    *("[" * MAX_CHARS, "> " * 50_000, "*a_" * 30_000, "`" * MAX_CHARS, "|a" * 50_000, "* a\n" * 25_000),
    *("*a" * 25_000 + "b*" * 25_000, "~~a" * 30_000, "`a``" * 25_000, "[a](b '" * 14_000, "[a]: b\n" * 14_000),
    *("*a " * 25_000 + " b*" * 25_000, "[a" * 25_000 + "]" * 50_000, "&a;" * 33_000, "<a:" * 33_000),
    *(f"```js\n{one * (99_000 // len(one))}" for one in ("'\\\\'", '"', "/*", "a1 ", "'a ", "`\\\\")),
    "a|" * 256 + "\n" + "-|" * 256 + "\n" + "|\n" * 256,
]
SAME = """
*a* **b** `c` ***both*** ~~gone~~ a_b_c __init__ **a*b*c** *a `*` b*

# top #
###### deep
Setext
===

line one
line two\\
line three  \nline four

- tight
- list
  with a second line
  - nested *one*
    1. deeper

3. three
4. four

- loose

- list

  its second paragraph
  ```py
  def f():
      return "<b>"
  ```

> a quote
goes on
> - with a list
> > nested

    indented code

~~~
tildes
~~~

| a | b \\| c |
|---|:-:|
| `x` | **y** |

text before
| no | edge
| - | -
| 1 | 2

***
[x](https://e.org/a(b)c "a title") <https://e.org> ![image](https://e.org/i.png) [mail](mailto:a@e.org)
[bad](javascript:y) [none](data:text/html,x) [ref][one] [one] [open] &lt;b&gt; &amp; &copy;
[other](ftp://e.org) <irc:x> [broken](http://[x) [here](/agents?q=a&b#c) [ä](https://ä.example/ä%20b%zz)
&#65; \\*no\\* <b onclick=x> &alpha; &notit; **bold:**🎉 and 🎉**more**

[one]: https://e.org/one "of a reference"

| left | middle | right | none |
|:---|:---:|---:|---|
| 1 | 2 | 3 | 4 |

- [ ] a task with *emphasis*
- [x] done
  - [X] nested
- [y] none, \\[ ] none
- \\[x] none
- [x](https://e.org) a link
1. [ ]\ttabbed

- [ ] loose

- [one] a reference
"""
PROGRAM = """# hash // slashes -- dashes /* block
over two */ "a \\" b" 'c' `d` ""\"three
lines""\" 12.5e3 0xFF a1 _b $c ${#d} <i>&amp; 'open
SELECT select class def fn let const if None null nil true False
"""


@pytest_asyncio.fixture(loop_scope="session")
async def rendering(visitor: Visitor) -> Visitor:
    """A page of the hub, under its policy, in which `render(text)` gives the tree of nodes."""
    await visitor.open("/signin")
    await visitor.page.evaluate(
        """async () => {
          const { renderMarkdown } = await import("/static/js/markdown.js");
          const tree = (node) => node.nodeType === Node.TEXT_NODE ? node.data : [
            node.nodeName.toLowerCase(),
            Object.fromEntries([...(node.attributes ?? [])].map(({name, value}) => [name, value])),
            [...node.childNodes].map(tree)];
          window.renderMarkdown = renderMarkdown;
          window.render = (text) => tree(renderMarkdown(text))[2];
        }"""
    )
    return visitor


class Nodes(HTMLParser):
    """HTML as `render` gives it: texts, and lists of name, attributes and children."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.roots: list[Any] = []
        self._open: list[list[Any]] = [self.roots]
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        children: list[Any] = []
        self._open[-1].append([tag, dict(attributes), children])
        if tag not in ("br", "hr", "input"):
            self._open.append(children)

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].append(data)


def plain(nodes: list[Any], *, in_code: bool = False) -> list[Any]:
    """Nodes without the spaces between blocks and at the ends of texts."""
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, str):
            text = node if in_code else " ".join(node.split())
            if text:
                found.append(text)
        else:
            found.append([node[0], node[1], plain(node[2], in_code=node[0] == "code")])
    return found


async def test_it_renders_what_the_hub_renders(rendering: Visitor) -> None:
    # A script takes a byte order mark for a space.
    texts = [SAME, *SAME.split("\n\n"), *(one for one in VECTORS_AROUND if "\ufeff=" not in one)]
    shown = await rendering.page.evaluate("(texts) => texts.map(render)", texts)
    for text, nodes in zip(texts, shown, strict=True):
        assert plain(nodes) == plain(Nodes(to_html(text)).roots), text


async def test_a_hard_line_break_is_one_break_also_where_line_ends_are_kept(rendering: Visitor) -> None:
    shown = await rendering.page.evaluate("render", "one  \ntwo\\\nthree\nfour")
    line_break = ["br", {}, []]
    assert shown == [["p", {}, ["one", line_break, "two", line_break, "three\nfour"]]]


async def test_code_is_marked_as_the_hub_marks_it(rendering: Visitor) -> None:
    names = [name for one in LANGUAGES for name in one.names.split()]
    for name in [*names, "PY title", "unknown", ""]:
        text = f"```{name}\n{PROGRAM}```"
        shown = await rendering.page.evaluate("render", text)
        assert shown == Nodes(to_html(text).strip()).roots, name
        assert ("span" in str(shown)) == (name not in ("unknown", "")), name
    await rendering.check_calm()


@pytest.mark.attack
async def test_nothing_in_a_text_runs_or_leads_to_a_script(rendering: Visitor, attempts: Attempts) -> None:
    attempts.count("payloads in Markdown, each alone in each place of a text", len(VECTORS_AROUND))
    found = await rendering.page.evaluate(
        """(texts) => {
          const seen = new Set();
          for (const text of texts) {
            const holder = document.createElement("div");
            holder.append(window.renderMarkdown(text));
            document.body.append(holder);
            for (const one of holder.querySelectorAll("*")) {
              seen.add(one.localName);
              for (const {name} of one.attributes) seen.add(`${one.localName} ${name}`);
              if (one.localName === "a" && one.hasAttribute("href")) seen.add(one.protocol).add(one.rel);
            }
            holder.remove();
          }
          return [...seen];
        }""",
        VECTORS_AROUND,
    )
    attributes = {"a href", "a rel", "a title", "pre tabindex", "ol start"}
    attributes |= {f"{one} class" for one in ALLOWED_CLASSES}
    attributes |= {f"input {name}" for name in ("type", "disabled", "checked", "aria-label")}
    addresses = {"http:", "https:", "mailto:", "nofollow noopener ugc"}
    assert set(found) <= TAGS | attributes | addresses
    await rendering.check_calm()


@pytest.mark.timeout(60)
async def test_hostile_texts_take_little_time_and_stay_flat(rendering: Visitor) -> None:
    measure = """(text) => {
      const made = window.renderMarkdown(text);
      const depthOf = (node) => 1 + Math.max(0, ...[...node.children].slice(0, 9).map(depthOf));
      const cells = made.querySelectorAll("td").length;
      return {nodes: made.querySelectorAll("*").length, depth: depthOf(made), cells};
    }"""
    for text in HOSTILE:
        found = await rendering.page.evaluate(measure, text)
        assert found["depth"] < 70, text[:20]
        assert found["nodes"] < MAX_CHARS, text[:20]
        assert found["cells"] <= MAX_CELLS, text[:20]
    assert await rendering.page.evaluate("render('x'.repeat(200000))[0][2][0].length") == MAX_CHARS
