"""The limits of all apps, and a page for staff that shows how much of each limit each account uses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from a2a_bridge import limits as of_a2a_bridge
from accounts import limits as of_accounts
from accounts.models import User
from accounts.oauth.pages import signed_in
from accounts.quotas import MIB, AccountLimit, CountedRows
from agents import limits as of_agents
from agnt import limits as of_agnt
from gateway import limits as of_gateway
from hub import limits as of_hub
from webhooks import limits as of_webhooks

ACCOUNTS_A_PAGE = 50
FIRST_SORTED_BY = "sessions"
APPS = (of_agents, of_accounts, of_webhooks, of_a2a_bridge, of_agnt, of_gateway, of_hub)
LIMITS = [limit for app in APPS for limit in vars(app).values() if isinstance(limit, AccountLimit)]
COLUMNS: Mapping[str, tuple[CountedRows, AccountLimit]] = {
    rows.name or limit.name: (rows, limit) for limit in LIMITS for rows in (*limit.counted, *limit.also_shown)
}


@dataclass(frozen=True, slots=True)
class Cell:
    """How much of one limit one account uses."""

    number: int
    is_bytes: bool
    is_at_limit: bool


@never_cache
@gzip_page
@require_safe
def limits(request: HttpRequest) -> HttpResponse:
    """The table and the accounts that use most of one limit; for all but staff there is nothing here."""
    caller = signed_in(request)
    if caller is None or not caller.user.is_staff:
        raise Http404
    by = request.GET.get("by", "")
    if by not in COLUMNS or not COLUMNS[by][0].is_sorted:
        by = FIRST_SORTED_BY
    page = Paginator(COLUMNS[by][0].by_account(), ACCOUNTS_A_PAGE).get_page(request.GET.get("page"))
    columns = [(name, rows.is_sorted) for name, (rows, _) in COLUMNS.items()]
    context = {"limits": LIMITS, "columns": columns, "by": by, "page": page, "accounts": _accounts(page)}
    return render(request, "limits.html", context)


def _accounts(page: Page[Any]) -> list[tuple[str, list[Cell]]]:
    """A row for each account of a page: its login, and a cell for each column."""
    accounts = [account for account, _ in page.object_list]
    logins = dict(User.objects.filter(pk__in=accounts).values_list("pk", "login"))
    used = [(limit, dict(rows.by_account(accounts))) for rows, limit in COLUMNS.values()]
    return [
        (logins.get(account, ""), [_cell(limit, numbers.get(account) or 0) for limit, numbers in used])
        for account in accounts
    ]


def _cell(limit: AccountLimit, number: int) -> Cell:
    return Cell(number, limit.unit == MIB, bool(limit.most) and number >= limit.most)
