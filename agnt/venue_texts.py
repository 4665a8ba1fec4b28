"""The texts of venues that are searched, and marks: integers with a bit for each venue, the lowest for the first.

Venues share most of their terms, so that there is far less to look through in all terms than in all texts. Those
terms can have a part that have the rarest pair of neighbours among its characters.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

GRAM_CHARS = 2
END = "\0"  # of a field; no search has it
FREQUENT = (
    32  # a term of more than one venue in so many is kept as marks, which then take less memory than numbers
)


class VenueTexts:
    """A text for each venue, of some of its fields. Parts that are looked for are given in folded case.

    `split`: the terms of a field, so that what is looked for is a part of one term.
    """

    def __init__(self, fields_of_venues: Iterable[Sequence[str]], split: Callable[[str], Iterable[str]]) -> None:
        self._texts: list[str] = []
        numbers_by_term: dict[str, array[int]] = {}
        for number, fields in enumerate(fields_of_venues):
            folded = [field.casefold() for field in fields]
            self._texts.append(END.join(folded))
            for term in {term for field in folded for term in split(field)}:
                numbers_by_term.setdefault(term, array("I")).append(number)
        self._terms = list(numbers_by_term)
        most = len(self._texts) // FREQUENT
        self._rare = [numbers if len(numbers) <= most else None for numbers in numbers_by_term.values()]
        self._frequent = {
            nth: mark(numbers) for nth, numbers in enumerate(numbers_by_term.values()) if len(numbers) > most
        }
        self._terms_by_gram: dict[str, array[int]] = {}
        for nth, term in enumerate(self._terms):
            for gram in _grams_of(term):
                self._terms_by_gram.setdefault(gram, array("I")).append(nth)

    def has(self, part: str, number: int) -> bool:
        """Whether the text of a venue has this part."""
        return part in self._texts[number]

    def find_marks(self, part: str) -> int | None:
        """The venues whose texts have this part; None: looking at one venue after the other is as quick."""
        of_grams = [self._terms_by_gram.get(gram, _NONE) for gram in _grams_of(part)]
        candidates = min(of_grams, key=len, default=None)
        if candidates is None or len(candidates) > len(self._texts) // 4:
            return None
        marks, rare = 0, array("I")
        for nth in candidates:
            if part not in self._terms[nth]:
                continue
            numbers = self._rare[nth]
            if numbers is None:
                marks |= self._frequent[nth]
            else:
                rare.extend(numbers)
        return marks | mark(rare)


def mark(numbers: Sequence[int]) -> int:
    """The marks of these venues."""
    if not numbers:
        return 0
    marks = bytearray(max(numbers) // 8 + 1)
    for number in numbers:
        marks[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(marks, "little")


def read_marks(marks: int) -> Iterator[int]:
    """The numbers of marked venues, ascending."""
    bits = f"{marks:b}"[::-1]
    at = bits.find("1")
    while at >= 0:
        yield at
        at = bits.find("1", at + 1)


_NONE: "array[int]" = array("I")


def _grams_of(text: str) -> set[str]:
    return {text[at : at + GRAM_CHARS] for at in range(len(text) - GRAM_CHARS + 1)}
