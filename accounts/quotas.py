"""The limits of an account. Each limit is declared once, in `limits.py` of the app whose rows it counts.

The page `/limits` and docs/reference/limits.md are made from the declarations.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Count, Q, QuerySet

from accounts.errors import SignInRefused
from accounts.models import User

MEBIBYTE = 1_048_576
MIB = "MiB"
EVERY_ROW = Q()
NUMBER_OF_ROWS = Count("pk")


class QuotaExceeded(SignInRefused):
    """The account has reached the limit; the text is public."""

    status = 429

    def __init__(self, text: str, code: str = "quota_exceeded") -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Rows of accounts. `owner_path` leads from a row to its account; `name`: needed beside other rows of a limit.

    `where`: the condition of the rows that count; `number`: the number that they make. `is_sorted`: the database
    finds the numbers of all accounts fast, so `/limits` can sort by them.
    """

    rows: Callable[[], QuerySet[Any, Any]]
    owner_path: str = "owner"
    name: str = ""
    where: Q = EVERY_ROW
    number: Any = NUMBER_OF_ROWS
    is_sorted: bool = True

    def count(self, account_id: int, among: Q = EVERY_ROW) -> int:
        """The number for the rows of one account that meet the condition."""
        rows = self.rows().filter(self.where, among, **{self.owner_path: account_id})
        return int(rows.aggregate(number=self.number)["number"] or 0)

    def by_account(self, accounts: Sequence[int] | None = None) -> QuerySet[Any, Any]:
        """Pairs of account and number, the highest first, of these accounts or of all."""
        rows = self.rows().filter(self.where)
        if accounts is not None:
            rows = rows.filter(**{f"{self.owner_path}__in": accounts})
        grouped = rows.order_by().values_list(self.owner_path).annotate(number=self.number)
        most_first: QuerySet[Any, Any] = grouped.order_by("-number", self.owner_path)
        return most_first


@dataclass(frozen=True, slots=True)
class AccountLimit:
    """The most that one account may have of one thing, and the hub's answer to one more.

    `limit`: a fixed number, or the module `settings` of an app and a name in it. 0: no limit. `counted`: the rows
    whose numbers together may not exceed the limit; without rows the caller of `check_number` counts.
    `also_shown`: rows among these that `/limits` shows apart. `refused_as`: makes an error from `refusal`, which
    is the text for the user, and `code`.

    `counts` and `one_more` are columns of docs/reference/limits.md; without `counts`, the text of the setting.
    """

    name: str
    limit: int | tuple[Any, str]
    counted: Sequence[CountedRows] = ()
    also_shown: Sequence[CountedRows] = ()
    unit: str = ""
    refusal: str = "you have {held} {name}, and {most} are the most: remove some first"
    code: str = "quota_exceeded"
    refused_as: Callable[[str, str], Exception] = QuotaExceeded
    is_of_process: bool = False
    counts: str = ""
    one_more: str = "429 `quota_exceeded`"

    @property
    def setting(self) -> str:
        """The name of the setting that has the limit; empty for a fixed one."""
        return "" if isinstance(self.limit, int) else self.limit[1]

    @property
    def number(self) -> int:
        """The current limit, in its unit."""
        return self.limit if isinstance(self.limit, int) else getattr(*self.limit)

    @property
    def most(self) -> int:
        """The current limit in the unit in which rows are counted: bytes where the limit's unit is MiB."""
        return self.number * (MEBIBYTE if self.unit == MIB else 1)

    def count_used(self, account_id: int, among: Q = EVERY_ROW) -> int:
        """The part of the limit that the account uses, counted in the rows that meet a condition."""
        return sum(rows.count(account_id, among) for rows in self.counted)

    def has_room(self, account_id: int, more: int = 1, *, among: Q = EVERY_ROW, share: int = 1) -> bool:
        """True if `more` further ones are within the limit; for the rows of `where`, within the limit over
        `share`.
        """
        return not self.most or self.count_used(account_id, among) + more <= -(-self.most // share)

    def check(self, account_id: int, more: int = 1) -> None:
        """Refuse more than the limit. Call it in the transaction that adds the rows: the account stays locked.

        Raises:
            QuotaExceeded, or the error of `refused_as`: with `more` rows the account would exceed the limit.
        """
        if self.most:
            lock_owner(account_id)
            self.check_number(self.count_used(account_id), more)

    def check_number(self, held: int, more: int = 1) -> None:
        """Like `check`, for a caller that has counted the rows, and holds the lock.

        Raises:
            QuotaExceeded, or the error of `refused_as`: `held` and `more` together exceed the limit.
        """
        if self.most and held + more > self.most:
            text = self.refusal.format(name=self.name, held=held, wanted=held + more, most=self.number)
            raise self.refused_as(text, self.code)


def lock_owner(user_id: int) -> None:
    """Lock the user's row until the transaction ends, so that quota checks of one user run one after another.

    On SQLite there is nothing to do: a transaction has the database's write lock from its beginning (IMMEDIATE).
    """
    if connection.features.has_select_for_update:
        list(User.objects.select_for_update(no_key=True).filter(pk=user_id).values_list("pk"))
