"""Words that texts, code and pages do without: people without a name, and metaphors that a reader must guess."""

import re

from tests.repository.test_docs import CODE
from tests.repository.tracked import ROOT, named, shown

STEMS = "whoever|whomever|nobody|somebody|anybody|everybody|goodbye|patience|corked|estate|door|house"
# An underscore ends a word, so that names of functions and tests count too.
WORDS = re.compile(rf"(?<![a-z])((?:{STEMS})s?)(?![a-z])", re.IGNORECASE)
TEXTS = ("*.md",)
LISTS_THE_WORDS = {"tests/repository/test_plain_words.py"}
CODE_FILES = ("*.py", "*.html", "*.js", "*.txt", "Makefile", "*.toml", "*.yaml", "*.yml", "*.conf", "*.css")
# What stays: the operating system's user `nobody`, whom PostgreSQL runs as, and the name of a constraint.
ALLOWED = re.compile(
    r"`nobody`|postgres://nobody@|getpwnam\(\"nobody\"\)|\bnobody\.pw_[ug]id|^    nobody = pwd\."
    r"|nobody_blocks_themselves",
    re.MULTILINE,
)
GLOSSARY = ROOT / "docs" / "glossary.md"
IN_CODE = re.compile(r"`([a-z0-9_]+/[\w/.]*)`")


def find_words(text: str) -> list[str]:
    """The words in a text, without code blocks, code spans and addresses of links."""
    return WORDS.findall(re.sub(r"\]\([^)]*\)", "]", CODE.sub("", text))) if may_hold_one(text) else []


def find_words_in_code(text: str) -> list[str]:
    """The words in names, comments, docstrings and strings."""
    return WORDS.findall(ALLOWED.sub("", text)) if may_hold_one(text) else []


def may_hold_one(text: str) -> bool:
    """True if a word may be in a text: a look for parts of words takes a tenth of the time of the patterns."""
    lower = text.lower()
    return any(stem in lower for stem in STEMS.split("|"))


def test_texts_use_plain_words() -> None:
    files = named(*TEXTS)
    assert len(files) > 100
    assert not {shown(path): words for path in files if (words := find_words(path.read_text()))}


def test_code_and_pages_use_plain_words() -> None:
    files = [path for path in named(*CODE_FILES) if shown(path) not in LISTS_THE_WORDS]
    found = {shown(path): words for path in files if (words := find_words_in_code(path.read_text()))}
    assert len(files) > 500
    assert not found


def test_a_word_is_found_in_prose_and_not_in_code_spans() -> None:
    assert find_words("Nobody waits, whoever\nasked.") == ["Nobody", "whoever"]
    assert not find_words("The user `nobody` may not:\n\n    id nobody\n\n[why](nobody.md)\n")


def test_a_word_is_found_in_names_and_strings() -> None:
    assert find_words_in_code("def is_nobody_there():\n    return 'warehouse house'\n") == ["nobody", "house"]
    assert not find_words_in_code('nobody_blocks_themselves = "postgres://nobody@127.0.0.1/x"  # `nobody`')


def test_files_named_in_the_glossary_exist() -> None:
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    names = {name for row in rows for name in IN_CODE.findall(row) if name != "owner/slug"}
    assert len(names) > 30
    assert not [name for name in sorted(names) if not (ROOT / name).exists()]
