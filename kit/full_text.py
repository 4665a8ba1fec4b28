"""Search by words in the databases' own full text indexes, FTS5 and `tsvector` (docs/adr/0184).

The database keeps the index: SQLite by triggers that fill a table beside the model's, PostgreSQL in generated
columns. Words are stemmed as English, without accents, in any order. A query is read as plain words:
its punctuation has no meaning.
"""

import re
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

from django.db import DatabaseError, connection, connections, transaction
from django.db.migrations.operations.base import Operation
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

MAX_WORDS = 12  # words of a query; further words are ignored
MAX_CHARS = 64  # characters of a word
SHORTEST_MISSPELT = 4
MERGED_PAGES = 500  # of SQLite's index, in one transaction
NAME, PLACE, KIND, TEXT = "A", "B", "C", "D"  # the kinds of columns; a match in a name counts most
_WEIGHTS = {NAME: 8, PLACE: 4, KIND: 4, TEXT: 1}
_PG_WEIGHTS = "'{0.1, 0.4, 0.4, 1.0}'"  # the weights D to A of PostgreSQL
_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(
    ["a", "an", "and", "at", "by", "for", "in", "is", "me", "my", "near", "of", "on", "or", "the", "to", "with"]
)

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


class FullText(NamedTuple):
    """The searched columns of a table, each with its kind of text.

    `json`: the columns whose strings are searched.
    """

    table: str
    columns: Mapping[str, str]
    json: Sequence[str] = ()


class _Step(NamedTuple):
    """A condition with its values, and the expression by which its rows are sorted, the best last."""

    condition: str
    values: Sequence[str]
    relevance: str
    relevance_values: Sequence[str]


def read_words(text: str) -> list[str]:
    """The words of a query, each once; stop words such as `the` are left out unless there are no others."""
    words = dict.fromkeys(one[:MAX_CHARS] for one in _WORD.findall(_without_accents(text.lower())))
    return [*(word for word in words if word not in _STOP_WORDS)][:MAX_WORDS] or [*words][:MAX_WORDS]


def searches(found: Rows, index: FullText, text: str, *order: str, places: str = "") -> Iterator[Rows]:
    """Searches of `found`, the strictest first: take the first that has rows.

    Rows have all the words; words that begin so; words that are spelt almost so (PostgreSQL); some of the words.
    `places`: words that must all be, or begin, words of a PLACE column. Sorted by relevance, then by `order`.
    """
    words, where = read_words(text), read_words(places)
    if (text.strip() and not words) or (places.strip() and not where):
        yield found.none()
        return
    if not words and not where:
        yield found.order_by(*order)
        return
    is_sqlite = connections[found.db].vendor == "sqlite"
    for step in (_sqlite_steps if is_sqlite else _postgresql_steps)(index, words, where):
        tables = [f"{index.table}_words"] if is_sqlite else []
        relevance = RawSQL(step.relevance, step.relevance_values)
        matching = found.extra(where=[step.condition], params=step.values, tables=tables)
        yield cast("Rows", matching.order_by(*[relevance.desc()] if words else [], *order))


def search(found: Rows, index: FullText, text: str, *order: str) -> Rows:
    """The first of `searches` that has rows, or the last."""
    for matching in searches(found, index, text, *order):
        if matching.exists():
            break
    return matching


def _sqlite_steps(index: FullText, words: Sequence[str], where: Sequence[str]) -> Iterator[_Step]:
    mirror = f"{index.table}_words"
    weights = ", ".join(str(_WEIGHTS[kind]) for kind in index.columns.values())
    place = _within(index, PLACE, _join(" AND ", where, '"{}" *'))
    # Rows with the words in a name come first: `bm25` ranks all rows alike for words that half of the rows have.
    in_name = f"{mirror}.rowid IN (SELECT rowid FROM {mirror} WHERE {mirror} MATCH %s)"
    for join, form in ((" AND ", '"{}"'), (" AND ", '"{}" *'), (" OR ", '"{}"')) if words else (("", ""),):
        of_words = _join(join, words, form)
        match = " AND ".join(filter(None, (of_words, place)))
        condition = f"{mirror} MATCH %s AND {mirror}.rowid = {index.table}.id"
        ranked = f"1000 * ({in_name}) - round(bm25({mirror}, {weights}), 1)"
        yield _Step(condition, [match], ranked, [_within(index, NAME, of_words)])


def _within(index: FullText, wanted: str, match: str) -> str:
    """An FTS5 condition that matches only the columns of one kind."""
    columns = " ".join(column for column, kind in index.columns.items() if kind == wanted)
    return f"{{{columns}}} : {match}" if match else ""


def _postgresql_steps(index: FullText, words: Sequence[str], where: Sequence[str]) -> Iterator[_Step]:
    place = _join(" & ", where, "'{}':*B")
    has_words = f"{index.table}.words @@ to_tsquery('english', %s)"
    ranked = f"round(ts_rank({_PG_WEIGHTS}, {index.table}.words, to_tsquery('english', %s))::numeric, 1)"
    for join, form in ((" & ", "'{}'"), (" & ", "'{}':*"), (" | ", "'{}'")) if words else (("", ""),):
        if join == " | " and has_trigrams():
            yield _misspelt(index.table, has_words, words, place)
        query = " & ".join(filter(None, (_join(join, words, form), place)))
        yield _Step(has_words, [query], ranked, [query])


def _misspelt(table: str, has_words: str, words: Sequence[str], place: str) -> _Step:
    """The step that finds rows with each word, or with a word of nearly the same spelling."""
    conditions, values = ([has_words], [place]) if place else ([], [])
    for word in words:
        is_long = len(word) >= SHORTEST_MISSPELT
        conditions.append(f"({has_words} OR %s <<%% {table}.spelled)" if is_long else has_words)
        values += [f"'{word}'", word] if is_long else [f"'{word}'"]
    likeness = " + ".join([f"strict_word_similarity(%s, {table}.spelled)"] * len(words))
    return _Step(" AND ".join(conditions), values, f"round(({likeness})::numeric, 1)", words)


def _join(join: str, words: Sequence[str], form: str) -> str:
    return f"({join.join(map(form.format, words))})" if words else ""


def _without_accents(word: str) -> str:
    bare = (each for each in unicodedata.normalize("NFD", word) if not "\u0300" <= each <= "\u036f")
    return unicodedata.normalize("NFC", "".join(bare))


@lru_cache(maxsize=1)
def has_trigrams() -> bool:
    """True if the PostgreSQL database has the extension `pg_trgm`, which finds words with typing errors."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        return cursor.fetchone() is not None


def forget_deleted_words(index: FullText) -> None:
    """Remove the words of deleted rows from the pages of SQLite's index, which else keeps them until it merges.

    Each step is a short transaction. PostgreSQL's index has no such words after the next vacuum.
    """
    if connection.vendor != "sqlite":
        return
    mirror = f"{index.table}_words"
    pages = -MERGED_PAGES  # below zero: begin to merge the whole index
    with connection.cursor() as cursor:
        while True:
            began, before = time.monotonic(), connection.connection.total_changes
            cursor.execute(f"INSERT INTO {mirror} ({mirror}, rank) VALUES ('merge', %s)", [pages])
            if connection.connection.total_changes - before < 2:
                return
            pages = MERGED_PAGES
            time.sleep(time.monotonic() - began)


class AddFullText(Operation):
    """Make the full text index of a table, and fill it.

    A migration that renames or removes an indexed column repeats this operation after it. Any other change of the
    table leaves the index as it is (`hub.sqlite.base.SchemaEditor`).
    """

    reduces_to_sql = True
    reversible = True

    def __init__(self, index: FullText) -> None:
        self.index = index

    def describe(self) -> str:
        """See Operation."""
        return f"Index the words of {self.index.table}"

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing: the models have no fields for the index."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """See Operation."""
        self.database_backwards(app_label, schema_editor, from_state, to_state)
        if schema_editor.connection.vendor == "sqlite":
            statements = _sqlite_index(self.index)
        else:
            statements = _postgresql_index(self.index, is_extended=_make_trigrams(schema_editor.connection))
        for statement in statements:
            schema_editor.execute(statement, params=None)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """See Operation."""
        table = self.index.table
        if schema_editor.connection.vendor == "sqlite":
            for moment in ("insert", "update", "delete"):
                schema_editor.execute(f"DROP TRIGGER IF EXISTS {table}_words_{moment}")
            schema_editor.execute(f"DROP TABLE IF EXISTS {table}_words")
        else:
            schema_editor.execute(
                f"ALTER TABLE {table} DROP COLUMN IF EXISTS words, DROP COLUMN IF EXISTS spelled"
            )


def read_triggers(connection: Any, table: str) -> list[str]:
    """The statements that created the triggers of an SQLite table, to create them again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [table])
        return [statement for (statement,) in cursor.fetchall()]


def _sqlite_index(index: FullText) -> Iterator[str]:
    table, mirror = index.table, f"{index.table}_words"

    def texts_of(row: str) -> str:
        strings = "(SELECT group_concat(atom, ' ') FROM json_tree({}) WHERE type = 'text')"
        of_columns = (f"{row}.{one}" for one in index.columns)
        return ", ".join(
            strings.format(text) if one in index.json else text
            for one, text in zip(index.columns, of_columns, strict=True)
        )

    names = ", ".join(index.columns)
    yield (f"CREATE VIRTUAL TABLE {mirror} USING fts5({names}, tokenize = 'porter unicode61 remove_diacritics 2')")
    put = f"INSERT INTO {mirror} (rowid, {names})"
    yield f"{put} SELECT id, {texts_of(table)} FROM {table}"
    drop = f"DELETE FROM {mirror} WHERE rowid = old.id"
    for moment, what in (
        ("insert", f"{put} VALUES (new.id, {texts_of('new')})"),
        (f"update OF id, {names}", f"{drop}; {put} VALUES (new.id, {texts_of('new')})"),
        ("delete", drop),
    ):
        yield f"CREATE TRIGGER {mirror}_{moment.split()[0]} AFTER {moment} ON {table} BEGIN {what}; END"


def _postgresql_index(index: FullText, *, is_extended: bool) -> Iterator[str]:
    table = index.table
    texts = {
        one: f"jsonb_path_query_array({one}, 'strict $.** ? (@.type() == \"string\")')::text"
        if one in index.json
        else one
        for one in index.columns
    }
    # Removes accents without `unaccent`, which is not immutable, as generated columns require. Removes
    # punctuation, because PostgreSQL takes `owner/slug` for the name of a file.
    bare = r"normalize(regexp_replace(normalize({}, NFD), '[\u0300-\u036f]+', '', 'g'), NFC)"
    signs = r"'\\[nrtbf]|[\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]+'"
    plain = {one: f"regexp_replace({bare.format(text)}, {signs}, ' ', 'g')" for one, text in texts.items()}
    words = " || ".join(
        f"setweight(to_tsvector('pg_catalog.english', {plain[one]}), '{kind}')"
        for one, kind in index.columns.items()
    )
    spelled = " || ' ' || ".join(plain[one] for one, kind in index.columns.items() if kind != TEXT)
    yield (
        f"ALTER TABLE {table} ADD COLUMN words tsvector GENERATED ALWAYS AS ({words}) STORED,"
        f" ADD COLUMN spelled text GENERATED ALWAYS AS ({spelled}) STORED"
    )
    yield f"CREATE INDEX {table}_words ON {table} USING gin (words)"
    if is_extended:
        yield trigram_index(index)


def trigram_index(index: FullText) -> str:
    """The statement that creates the index for words with typing errors; only PostgreSQL with `pg_trgm` accepts
    it.
    """
    return f"CREATE INDEX {index.table}_spelled ON {index.table} USING gin (spelled gin_trgm_ops)"


def _make_trigrams(connection: Any) -> bool:
    """Create the extension `pg_trgm`; False if the database user may not, or the server does not have it."""
    has_trigrams.cache_clear()
    try:
        with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
    except DatabaseError:
        return False
    return True
