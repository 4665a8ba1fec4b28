"""Marks comments, strings, numbers and keywords of program text, as `static/js/highlight.js` does.

The time is linear in any text: a string ends after STRING_CHARS, and a pattern without that limit always matches.
"""

import re
from dataclasses import dataclass
from functools import cache

from markdown_it.common.utils import escapeHtml

CLASSES = {f"code-{kind}" for kind in ("comment", "string", "number", "keyword")}
STRING_CHARS = 300
HASH = r"(?<![\w$&{])#[^\n]*"
SLASHES = r"//[^\n]*|/\*[\s\S]*?(?:\*/|(?![\s\S]))"
DASHES = r"--[^\n]*"
TRIPLE = r'"""[\s\S]*?(?:"""|(?![\s\S]))'


@dataclass(frozen=True, slots=True)
class LanguageSyntax:
    """The syntax of some languages. `comment`: a pattern. `quotes`: the quotes of strings of one line."""

    names: str
    comment: str
    quotes: str
    keywords: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches a comment, string, word or number."""
        strings = "|".join(
            rf"{quote}(?:[^{quote}\\\n]|\\[^\n]){{0,{STRING_CHARS}}}{quote}" for quote in self.quotes
        )
        rules = rf"(?P<comment>{self.comment})|(?P<string>{strings})|(?P<word>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)"
        return re.compile(rules, re.ASCII)


LANGUAGES = (
    LanguageSyntax(
        "python py",
        rf"{TRIPLE}|{HASH}",
        "\"'",
        "and as assert async await break case class continue def del elif else except False finally for from "
        "global if import in is lambda match None nonlocal not or pass raise return True try while with yield",
    ),
    LanguageSyntax(
        "javascript js jsx mjs typescript ts tsx",
        SLASHES,
        "\"'`",
        "async await break case catch class const continue default delete do else enum export extends false "
        "finally for from function if implements import in instanceof interface let new null of private "
        "public readonly return static super switch this throw true try type typeof undefined var void while "
        "yield",
    ),
    LanguageSyntax(
        "rust rs",
        SLASHES,
        '"',
        "as async await break const continue crate dyn else enum extern false fn for if impl in let loop "
        "match mod move mut pub ref return self Self static struct super trait true type unsafe use where "
        "while",
    ),
    LanguageSyntax(
        "c cpp c++ h hpp java kotlin kt go golang csharp cs swift php scala dart",
        SLASHES,
        "\"'`",
        "abstract auto bool boolean break byte case catch chan char class const continue default defer do "
        "double else enum extends extern false final finally float for func fun go goto if implements import "
        "in int interface internal let long map namespace new nil null nullptr override package private "
        "protected public range return select short signed sizeof static string struct super switch template "
        "this throw throws true try type typedef union unsigned using val var virtual void volatile when "
        "while",
    ),
    LanguageSyntax(
        "shell sh bash zsh console",
        HASH,
        "\"'",
        "case do done elif else esac export fi for function if in local return set then unset until while",
    ),
    LanguageSyntax(
        "ruby rb",
        HASH,
        "\"'`",
        "and begin class def do else elsif end false if in module nil not or require rescue return self super "
        "then true unless until when while yield",
    ),
    LanguageSyntax(
        "sql",
        DASHES,
        "\"'",
        "add all alter and as asc begin between by case check commit create delete desc distinct drop else "
        "end exists false from group having in index inner insert into is join key left like limit not null "
        "offset on or order outer primary references returning right rollback select set table then true "
        "union unique update using values view when where with",
    ),
    LanguageSyntax(
        "json yaml yml toml ini",
        HASH,
        "\"'",
        "true false null",
    ),
)
IN_ANY_CASE = {"sql"}


def highlight(text: str, language: str) -> str:
    """Program text as HTML; text of a language that is not in the table is only escaped."""
    found = _by_name().get(language.lower())
    if found is None:
        return escapeHtml(text)
    pattern, keywords = found
    done, end = [], 0
    for match in pattern.finditer(text):
        word = match[0].lower() if language.lower() in IN_ANY_CASE else match[0]
        kind = match.lastgroup if match.lastgroup != "word" else "keyword" if word in keywords else ""
        if kind:
            done.append(escapeHtml(text[end : match.start()]))
            done.append(f'<span class="code-{kind}">{escapeHtml(match[0])}</span>')
            end = match.end()
    return "".join([*done, escapeHtml(text[end:])])


@cache
def _by_name() -> dict[str, tuple[re.Pattern[str], frozenset[str]]]:
    scanners = [(one.names.split(), one.pattern, frozenset(one.keywords.split())) for one in LANGUAGES]
    return {name: (pattern, keywords) for names, pattern, keywords in scanners for name in names}
