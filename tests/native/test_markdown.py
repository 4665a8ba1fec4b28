"""Texts of agents and owners become HTML that can do nothing."""

import re
import time
from html.parser import HTMLParser
from urllib.parse import urlsplit

from kit.markdown import ALLOWED_CLASSES, ATTRIBUTES, MAX_CELLS, MAX_CHARS, SET_ATTRIBUTES, TAGS, to_html, to_line
from tests.browser.vectors import VECTORS


def test_markdown_keeps_its_form_and_loses_its_teeth() -> None:
    for text, html in [
        ("*a* **b** `c`", "<p><em>a</em> <strong>b</strong> <code>c</code></p>"),
        ("# top\n###### deep", "<h3>top</h3>\n<h6>deep</h6>"),
        ("[x](https://e.org)", '<p><a href="https://e.org" rel="nofollow noopener ugc">x</a></p>'),
        ("![x](https://e.org/i.png)", '<p>!<a href="https://e.org/i.png" rel="nofollow noopener ugc">x</a></p>'),
        ("<script>x</script>", "<p>&lt;script&gt;x&lt;/script&gt;</p>"),
        ("<b onclick=x>y</b>", "<p>&lt;b onclick=x&gt;y&lt;/b&gt;</p>"),
        ("[x](javascript:y)", "<p>[x](javascript:y)</p>"),
        ("a\0b", "<p>ab</p>"),
        ("```js\n<i>\n```", '<pre tabindex="0"><code>&lt;i&gt;\n</code></pre>'),
        ("```\nif 1\n```", '<pre tabindex="0"><code>if 1\n</code></pre>'),
        (
            "```js title\nlet a = '<'; // b\n```",
            '<pre tabindex="0"><code><span class="code-keyword">let</span> a = '
            '<span class="code-string">\'&lt;\'</span>; <span class="code-comment">// b</span>\n</code></pre>',
        ),
        ("- \\[ ] a\n- [x]b", "<ul>\n<li>[ ] a</li>\n<li>[x]b</li>\n</ul>"),
        (
            "|a|b|c|\n|:--|:-:|--:|",
            '<table>\n<thead>\n<tr>\n<th class="align-left">a</th>\n<th class="align-center">b</th>\n'
            '<th class="align-right">c</th>\n</tr>\n</thead>\n</table>',
        ),
    ]:
        assert to_html(text).strip() == html, (text, html)


def test_a_preview_is_one_line_without_markup() -> None:
    for text, line in [
        ("# Report\n\n**one** and *two*, `a_b`\n\n- [x](https://e.org) y\n- z", "Report one and two, a_b x y z"),
        ("|a|b|\n|-|-|\n|1|~~2~~|", "a b 1 2"),
        ("![a cat](https://e.org/i.png) sits\nhere  \nnow\\\nstill", "a cat sits here now still"),
        ("```py\nx = 1\n\ny  = *p\n```\n> quoted", "x = 1 y = *p quoted"),
        ("<b>x</b> &amp; 2 * 3 * 4", "<b>x</b> & 2 * 3 * 4"),
        ("[x](javascript:y) a\0b", "[x](javascript:y) ab"),
        ("x" * 60, "x" * 60),
        ("x" * 61, f"{'x' * 59}…"),
        ("word " * 13, f"{'word ' * 11}word…"),
        ("[x](https://e.org/" + "y" * 200 + ")", "[x](https://e.org/yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…"),
        ("[x](https://e.org/yyyyyyyyyyyyyyyyyyyy)" + " word" * 20, "x" + " word" * 11 + " wo…"),
        ("", ""),
        # Ten lines of six cells are read as a table; a cell is costly.
        ("|a" * 5 + "\n" + "|-" * 5 + "\n" + "|x\n" * 30, "a a a a a" + " x" * 8 + " |x" * 11 + "…"),
    ]:
        assert to_line(text, 60) == line, (text, line)


def test_a_task_is_a_box_that_no_one_changes() -> None:
    html = to_html("- [ ] a\n- [x] *b*")
    boxes = [
        set(attributes.split()) for attributes in re.findall(r"<input ([^>]*)>", html.replace("To do", "To-do"))
    ]
    always = {'type="checkbox"', 'disabled=""'}
    assert boxes == [always | {'aria-label="To-do"'}, always | {'aria-label="Done"', 'checked=""'}]
    assert html.count('<li class="task">') == 2
    assert "> <em>b</em></li>" in html


AT_MOST_S = 10  # of processor time; the slowest takes one
CODE = [f"```js\n{one * (99_000 // len(one))}" for one in ("'\\\\'", '"', "/*", "a1 ", "'a ", "`\\\\")]


def test_hostile_markdown_does_not_hold_up_the_page() -> None:
    for text in ["[" * MAX_CHARS, "> " * 50_000, "*a_" * 30_000, "`" * MAX_CHARS, "|a" * 50_000, *CODE]:
        began = time.process_time()
        assert "<script" not in to_html(text)
        assert len(to_line(text, 600)) <= 600
        assert time.process_time() - began < AT_MOST_S, text[:12]


class Checked(HTMLParser):
    """Keeps what is not on the lists."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[tuple[str, ...]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag not in TAGS or (tag == "a" and named.get("rel") != "nofollow noopener ugc"):
            self.bad.append((tag, str(named)))
        allowed = ATTRIBUTES.get(tag, set()) | ({"rel"} if tag == "a" else set())
        for name, value in named.items() - SET_ATTRIBUTES.get(tag, {}).items():
            is_good = value in ALLOWED_CLASSES[tag] if name == "class" else name in allowed
            if name == "href":
                is_good &= urlsplit(value or "").scheme in ("", "http", "https", "mailto")
            if not is_good:
                self.bad.append((tag, name, str(value)))

    def handle_comment(self, data: str) -> None:
        self.bad.append(("comment", data))


def test_no_vector_leaves_anything_but_text() -> None:
    for around in [
        "{}",
        "# {}",
        "- {}\n- {}",
        "> {}",
        "**{}**",
        "[{}](https://e.org)",
        "| {} |\n|-:|\n| {} |",
        "- [x] {}",
        "```js\n{}\n```",
    ]:
        for vector in VECTORS:
            page = Checked()
            page.feed(to_html(around.replace("{}", vector)))
            assert page.bad == [], (around, vector)


def test_the_tables_of_a_text_have_a_bounded_number_of_cells_and_the_rest_stays_text() -> None:
    head = "|a" * 20 + "|\n" + "|-" * 20 + "|\n"
    for text in (head + "x\n" * 10_000, (head + "x\n" * 100 + "\n") * 70):
        html = to_html(text)
        assert MAX_CELLS / 2 < html.count("<td") <= MAX_CELLS
        assert html.count("x") == text.count("x")
