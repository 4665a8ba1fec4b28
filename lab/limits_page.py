"""The table of docs/reference/limits.md, from the declarations of limits. `lab.settings_page` writes the page."""

from collections.abc import Mapping
from typing import Any

from accounts.quotas import AccountLimit
from hub.account_limits import LIMITS
from lab.settings_page import LIMITS_PAGE, all_declarations, replace_table

HEAD = "| What | At most | Counted | Setting | One more |\n|---|---|---|---|---|\n"


def page() -> str:
    """The page with the table that the declarations make. Needs Django."""
    defaults = {one.name: one.arguments.get("default") for one in all_declarations()}
    return replace_table(LIMITS_PAGE.read_text(), HEAD, [_row(limit, defaults) for limit in LIMITS])


def _row(limit: AccountLimit, defaults: Mapping[str, Any]) -> str:
    number = defaults[limit.setting] if limit.setting else limit.fixed
    at_most = limit.at_most or f"{number} {limit.unit}".rstrip()
    counted = ": ".join(filter(None, ("in each process" if limit.is_of_process else "", limit.counts)))
    setting = f"`{limit.setting}`" if limit.setting else "fixed"
    return f"| {limit.name} | {at_most} | {counted} | {setting} | {limit.one_more} |"
