"""The texts of venues that are searched, and bitmaps: integers with a bit for each venue, the lowest of the first.

Venues share most of their terms, so that searching all terms is far less work than searching all texts. A term can
have a part only if it has each of its bigrams: the bigram that the fewest terms have gives the candidates.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

END = "\0"  # of a field; no search has it
TERMS_PER_VENUE = 16  # distinct ones of all venues, on average
HELD_PER_VENUE = 128  # distinct ones of one venue, on average
FREQUENT = (
    32  # a term of more than one venue in so many is kept as marks, which then take less memory than numbers
)


class VenueTexts:
    """A text for each venue, of some of its fields. Parts that are looked for are given in folded case.

    `split`: the terms of a field, so that what is looked for is a part of one term.
    """

    def __init__(self, fields_of_venues: Iterable[Sequence[str]], split: Callable[[str], Iterable[str]]) -> None:
        folded = [[field.casefold() for field in fields] for fields in fields_of_venues]
        self._texts = [END.join(fields) for fields in folded]
        numbers_by_term = _find_terms(folded, split)
        self._has_terms = numbers_by_term is not None
        numbers_by_term = numbers_by_term or {}
        self._terms = list(numbers_by_term)
        most = len(self._texts) // FREQUENT
        self._rare = [numbers if len(numbers) <= most else None for numbers in numbers_by_term.values()]
        self._frequent = {
            nth: make_bitmap(numbers)
            for nth, numbers in enumerate(numbers_by_term.values())
            if len(numbers) > most
        }
        self._terms_by_bigram: dict[str, array[int]] = {}
        for nth, term in enumerate(self._terms):
            for bigram in _bigrams_of(term):
                self._terms_by_bigram.setdefault(bigram, array("I")).append(nth)

    def has(self, part: str, number: int) -> bool:
        """Whether the text of a venue has this part."""
        return part in self._texts[number]

    def find_bitmap(self, part: str) -> int | None:
        """The venues whose texts have this part; None: looking at one venue after the other is as quick."""
        if not self._has_terms:
            return None
        of_bigrams = [self._terms_by_bigram.get(bigram, _NONE) for bigram in _bigrams_of(part)]
        candidates = min(of_bigrams, key=len, default=None)
        if candidates is None or len(candidates) > len(self._texts) // 4:
            return None
        bitmap, rare = 0, array("I")
        for nth in candidates:
            if part not in self._terms[nth]:
                continue
            numbers = self._rare[nth]
            if numbers is None:
                bitmap |= self._frequent[nth]
            else:
                rare.extend(numbers)
                if len(rare) > len(self._texts):
                    return None
        return bitmap | make_bitmap(rare)


def make_bitmap(numbers: Sequence[int]) -> int:
    """The bitmap of these venues."""
    if not numbers:
        return 0
    octets = bytearray(max(numbers) // 8 + 1)
    for number in numbers:
        octets[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(octets, "little")


def read_bitmap(bitmap: int) -> Iterator[int]:
    """The numbers of the venues of a bitmap, ascending."""
    bits = f"{bitmap:b}"[::-1]
    at = bits.find("1")
    while at >= 0:
        yield at
        at = bits.find("1", at + 1)


_NONE: "array[int]" = array("I")


def _find_terms(
    folded: Sequence[Sequence[str]], split: Callable[[str], Iterable[str]]
) -> "dict[str, array[int]] | None":
    """The venues of each term; None: the terms would take too much memory, as those of hostile texts."""
    numbers_by_term: dict[str, array[int]] = {}
    most_terms, most_held, held = TERMS_PER_VENUE * (len(folded) + 100), HELD_PER_VENUE * (len(folded) + 100), 0
    for number, fields in enumerate(folded):
        terms = {term for field in fields for term in split(field)}
        held += len(terms)
        for term in terms:
            numbers_by_term.setdefault(term, array("I")).append(number)
        if len(numbers_by_term) > most_terms or held > most_held:
            return None
    return numbers_by_term


def _bigrams_of(text: str) -> set[str]:
    return {text[at : at + 2] for at in range(len(text) - 1)}
