"""Renders Markdown as HTML that is safe in a page: texts of untrusted authors, and the project's own documents.

Raw HTML is shown as text, images become links, and the resulting HTML is filtered by an allow-list.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from kit.highlight import CLASSES, highlight

MAX_CHARS = 100_000
SHIFT = 2  # the page's own headings are h1 and h2
DEEPEST = 6
REL = "nofollow noopener ugc"
TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("table", "thead", "tbody", "tr", "th", "td", "h3", "h4", "h5", "h6", "span", "input"),
}
# `tabindex`: wide code can be scrolled by the keyboard. `disabled`: the box of a task cannot be changed.
SET_ATTRIBUTES = {"pre": {"tabindex": "0"}, "input": {"type": "checkbox", "disabled": ""}}
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "input": {"checked", "aria-label"}}
ALIGNED = {f"text-align:{side}": f"align-{side}" for side in ("left", "center", "right")}
ALLOWED_CLASSES = {"th": {*ALIGNED.values()}, "td": {*ALIGNED.values()}, "li": {"task"}, "span": CLASSES}
SCHEMES = {"http", "https", "mailto"}
TASK = re.compile(r"\[([ xX])\][ \t]")
BOX_LABELS = {False: "To do", True: "Done"}
MAX_CELLS = 10_000  # of all tables of a text
CELLS_LEFT = "cells_left"


def _align_cells(state: StateCore) -> None:
    """Align columns by a class, because the Content-Security-Policy forbids styles."""
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and "style" in token.attrs:
            token.attrs["class"] = ALIGNED[str(token.attrs.pop("style"))]


def _mark_tasks(state: StateCore) -> None:
    """Begin the list items `- [ ] text` and `- [x] text` with a box."""
    for item, paragraph, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if item.type == "list_item_open" and paragraph.type == "paragraph_open" and inline.children:
            first = inline.children[0]
            if first.type == "text" and (task := TASK.match(first.content)):
                item.attrSet("class", "task")
                is_done = task[1] != " "
                attributes: dict[str, str | int | float] = {"aria-label": BOX_LABELS[is_done]}
                box = Token("task_box", "input", 0, attrs=attributes | ({"checked": ""} if is_done else {}))
                first.content = first.content[3:]
                inline.children.insert(0, box)


def _read_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a table. Lines beyond the cells that are left stay text: short rows are filled up with costly cells."""
    columns = state.getLines(start, start + 1, 0, keepLastLF=False).count("|") + 1
    left = state.env.setdefault(CELLS_LEFT, MAX_CELLS)
    has_read = table(state, start, min(end, start + left // columns), silent)
    if has_read and not silent:
        state.env[CELLS_LEFT] = left - columns * (state.line - start)
    return has_read


def _new_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 20, "highlight": _highlight})
    parser.enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _read_table, {"alt": ["paragraph", "reference"]})  # "alt" as before
    return parser


def _new_reader() -> MarkdownIt:
    reader = _new_parser().disable("image")
    reader.core.ruler.push("align_cells", _align_cells)
    reader.core.ruler.after("inline", "mark_tasks", _mark_tasks)
    return reader


def _highlight(code: str, language: str, _attributes: str) -> str:
    return highlight(code, language)


_reader = _new_reader()


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
        allowed_classes=ALLOWED_CLASSES,
        set_tag_attribute_values=SET_ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel=REL,
    )
    return mark_safe(clean)  # noqa: S308  it passed nh3's allow-list


_previewer = _new_parser()


def to_line(text: str, max_chars: int) -> str:
    """A preview of the text: one line of at most `max_chars`, without markup, with the descriptions of images.

    The result is text, not HTML.
    """
    begin = text[: 2 * max_chars].replace("\0", "")  # markup is seldom longer than the text
    words: list[str] = []
    for token in _previewer.parse(begin, {CELLS_LEFT: max_chars}):
        # A token that is not text is a line break, or markup without content.
        pieces = [one.content or " " * one.type.endswith("break") for one in token.children or ()]
        words += ("".join(pieces) if token.type == "inline" else token.content).split()
    line = " ".join(words)
    is_whole = len(line) <= max_chars and len(text) <= 2 * max_chars
    return line if is_whole else f"{line[: max_chars - 1].rstrip()}…"


SECTION_ID = "s-"  # the prefix of the ids of headings, because the page has ids of its own
DOCUMENT_TAGS = TAGS | {"h2", "div"}
DOCUMENT_ATTRIBUTES = ATTRIBUTES | {
    **{f"h{level}": {"id"} for level in range(2, 7)},
    "div": {"class", "tabindex", "role", "aria-label"},
}


@dataclass(frozen=True, slots=True)
class Section:
    """The text under one heading. `id`: of the heading in the page; empty for the text before the first."""

    id: str
    level: int
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document of the project as a page: the text of its `h1`, and the rest as HTML and as text."""

    title: str
    html: SafeString
    sections: Sequence[Section]


def read_document(text: str, resolve: Callable[[str], str | None]) -> Document:
    """A document whose headings can be linked to. `resolve`: the address that a link leads to in the page.

    A link for which `resolve` returns None becomes plain text.
    """
    tokens = _documents.parse(text)
    title, body = _plain(tokens[1]), tokens[3:]
    sections = [Section("", 1, title, "")]
    before = tokens[2]
    for number, token in enumerate(body):
        if token.type in ("fence", "code_block"):
            _add_text(sections, token.content)
        elif token.type == "inline" and before.type == "heading_open":
            before.attrSet("id", _new_id(token.content, sections))
            sections.append(Section(str(before.attrGet("id")), int(before.tag[1:]), _plain(token), ""))
        elif token.type == "inline" and before.type == "th_open" and not token.content:
            before.tag = body[number + 1].tag = "td"  # an empty cell heads no column
        elif token.type == "inline":
            _add_text(sections, _plain(token))
        _resolve_links(token, resolve)
        before = token
    html = _documents.renderer.render(body, _documents.options, {})
    clean = nh3.clean(
        html,
        tags=DOCUMENT_TAGS,
        attributes=DOCUMENT_ATTRIBUTES,
        allowed_classes=ALLOWED_CLASSES,
        set_tag_attribute_values=SET_ATTRIBUTES,
        url_schemes=SCHEMES,
        link_rel="noopener",
    )
    return Document(title, mark_safe(clean), sections)  # noqa: S308  it passed nh3's allow-list


FENCED = re.compile(r" *(`{3,}|~{3,})")
HEADED = re.compile(r"(#{1,6}) +(.*?)(?: +#+)? *$")
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^()\s]*\)")
MARKS = re.compile(r"\*\*|`|^\|?[\s|:-]+\|?$|(?<!\\)\|")
ITEM = re.compile(r"^\s*(?:[-*>]|\d{1,2}\.) ")


def split_document(text: str) -> Sequence[Section]:
    """The sections of `read_document`, for a search over all documents, in a tenth of the time."""
    sections: list[Section] = []
    lines: list[list[str]] = []
    fence = ""
    for line in text.splitlines():
        mark, heading = FENCED.match(line), None if fence else HEADED.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif heading:
            section_id = _new_id(heading[2], sections) if sections else ""
            sections.append(Section(section_id, len(heading[1]), _without_marks(heading[2]), ""))
            lines.append([])
        elif lines:
            lines[-1].append(line if fence else _without_marks(ITEM.sub("", line)))
    texts = (LINK.sub(r"\1", "\n".join(below)) for below in lines)
    return [replace(one, text=text) for one, text in zip(sections, texts, strict=True)]


def _without_marks(line: str) -> str:
    return MARKS.sub(lambda mark: " " if "|" in mark[0] else "", line).replace("\\|", "|").strip()


def _add_text(sections: list[Section], text: str) -> None:
    last = sections[-1]
    sections[-1] = Section(last.id, last.level, last.heading, f"{last.text} {text}")


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _new_id(heading: str, before: Sequence[Section]) -> str:
    wanted = SECTION_ID + anchor_of(heading)
    known = sum(re.fullmatch(rf"{re.escape(wanted)}(-\d+)?", one.id) is not None for one in before)
    return f"{wanted}-{known}" if known else wanted


def _plain(token: Token) -> str:
    return "".join(" " if one.type == "softbreak" else one.content for one in token.children or ())


def _resolve_links(token: Token, resolve: Callable[[str], str | None]) -> None:
    kept: list[Token] = []
    is_dropped = False
    for one in token.children or ():
        if one.type == "link_open":
            address = resolve(str(one.attrGet("href")))
            is_dropped = address is None
            one.attrSet("href", address or "")
        if not (is_dropped and one.type in ("link_open", "link_close")):
            kept.append(one)
    if token.children is not None:
        token.children = kept


def _open_table(self: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    """Open a table inside an element that scrolls, by the keyboard too."""
    env["tables"] = env.get("tables", 0) + 1
    label = f'aria-label="Table {env["tables"]}"'
    return f'<div class="table-scroll" tabindex="0" role="region" {label}>\n<table>\n'


def _close_table(self: RendererHTML, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
    return "</table>\n</div>\n"


_documents = _new_reader()
_documents.add_render_rule("table_open", _open_table)
_documents.add_render_rule("table_close", _close_table)
