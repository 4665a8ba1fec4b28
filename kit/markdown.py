"""Renders Markdown of untrusted authors as HTML that is safe in a page.

Raw HTML is shown as text, images become links, and what comes out passes an allow-list besides.
"""

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

MAX_CHARS = 100_000
SHIFT = 2  # the page's own headings are h1 and h2
DEEPEST = 6
REL = "nofollow noopener ugc"
TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6"),
}
SCROLLS = {"pre": {"tabindex": "0"}}  # code that is wider than the page, by the keyboard too
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}

_reader = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table", "strikethrough"])
_reader.disable("image")


def _shift_headings(state: StateCore) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + SHIFT, DEEPEST)}"


_reader.core.ruler.push("shift_headings", _shift_headings)


def to_html(text: str) -> SafeString:
    """The text as HTML: headings from h3 on, links with `rel="nofollow"`, no images, no scripts, no styles."""
    read = _reader.render(text[:MAX_CHARS].replace("\0", ""))
    clean = nh3.clean(
        read,
        tags=TAGS,
        attributes=ATTRIBUTES,
        set_tag_attribute_values=SCROLLS,
        url_schemes=SCHEMES,
        link_rel=REL,
    )
    return mark_safe(clean)  # noqa: S308  it passed nh3's allow-list
