"""The table of docs/reference/limits.md, from the declarations of limits. `lab.settings_page` writes the page."""

from collections.abc import Mapping

from accounts.quotas import AccountLimit
from hub.account_limits import LIMITS
from lab.settings_page import LIMITS_PAGE, Declaration, all_declarations
from lab.tables import fill_table, table_line

COLUMNS = ("What", "At most", "Counted", "Setting", "One more")


def page() -> str:
    """The page with the table that the declarations make. Needs Django."""
    settings = {one.name: one for one in all_declarations()}
    return fill_table(LIMITS_PAGE.read_text(), COLUMNS, [_row(limit, settings) for limit in LIMITS])


def _row(limit: AccountLimit, settings: Mapping[str, Declaration]) -> str:
    setting = settings.get(limit.setting)
    number = setting.arguments["default"] if setting else limit.limit
    at_most = f"{number} {limit.unit}".rstrip()
    text = limit.counts or (setting.meaning if setting else "")
    counted = ": ".join(filter(None, ("in each process" if limit.is_of_process else "", text)))
    name = f"`{setting.name}`" if setting else "fixed"
    return table_line((limit.name, at_most, counted, name, limit.one_more))
