"""Words that the project's texts do without: people without a name, and metaphors that a reader must guess."""

import re
from pathlib import Path

import pytest

from tests.house.test_docs import CODE
from tests.house.tracked import ROOT, named, shown

WORDS = re.compile(
    r"\b(whoever|whomever|nobody|somebody|anybody|everybody|goodbyes?|patience|corked|estate|doors?|houses?)\b",
    re.IGNORECASE,
)
# The code still has them in names and docstrings. Add "*.py" and "templates/*" when it has none.
COVERED = ("*.md",)
GLOSSARY = ROOT / "docs" / "glossary.md"
IN_CODE = re.compile(r"`([a-z0-9_]+/[\w/.]*)`")


def found_words(text: str) -> list[str]:
    """The words in a text, without code blocks, code spans and addresses of links."""
    prose = re.sub(r"\]\([^)]*\)", "]", CODE.sub("", text))
    return WORDS.findall(prose)


@pytest.mark.parametrize("path", named(*COVERED), ids=shown)
def test_texts_use_plain_words(path: Path) -> None:
    assert not found_words(path.read_text())


def test_a_word_is_found_in_prose_and_not_in_code() -> None:
    assert found_words("Nobody waits, whoever\nasked.") == ["Nobody", "whoever"]
    assert not found_words("The user `nobody` may not:\n\n    id nobody\n\n[why](nobody.md)\n")


def test_files_named_in_the_glossary_exist() -> None:
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    names = {name for row in rows for name in IN_CODE.findall(row) if name != "owner/slug"}
    assert len(names) > 30
    assert not [name for name in sorted(names) if not (ROOT / name).exists()]
