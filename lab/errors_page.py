"""Tables of docs/reference/errors.md and docs/reference/limits.md. Both need Django.

`python -m lab.in_django lab.errors_page:write` writes three tables of errors.md from the registry of reasons in
`agents.core.errors` and `agents.core.failures`. `lab.settings_page` writes the table of limits.md.
"""

from collections.abc import Mapping

import openai_api.wire.errors
import operators.wire.errors
from a2a_bridge.surface.reference.errors import texts_of
from a2a_bridge.wire.errors import failure_text
from accounts.quotas import AccountLimit
from agents.core.errors import REFUSALS, Denied
from agents.core.failures import FAILURES
from agents.core.reasons import ClaimState, FailureReason
from agents.models.choices import AGENTS_OWN_WORDS
from gateway.wire.errors import error_code_of
from hub.pages import LIMITS
from lab import ROOT
from lab.settings_page import LIMITS_PAGE, Declaration, all_declarations, fill_table, table_line

PAGE = ROOT / "docs" / "reference" / "errors.md"
REFUSAL_COLUMNS = ("Reason", "Text", "When", "Ask again?")
CODE_COLUMNS = ("Reason", "Operators' REST and `/cli`", "OpenAI's API", "`a2a-v1`")
FAILURE_COLUMNS = ("Reason", "Text", "What happened", "Counted", "Claim")
CLAIMS: Mapping[ClaimState, str] = {
    ClaimState.FREED: "freed",
    ClaimState.OFFLINE: "freed",
    ClaimState.LINGERS: "lingers until the agent has finished",
    ClaimState.LINGERS_CONNECTED: "lingers until the agent's socket is gone",
    ClaimState.UNTIL_RECORDED: "until the reaper",
}


def page() -> str:
    """The page with the tables that the registry makes."""
    text = fill_table(PAGE.read_text(), REFUSAL_COLUMNS, map(refusal_row, REFUSALS))
    text = fill_table(text, CODE_COLUMNS, map(code_row, REFUSALS))
    return fill_table(text, FAILURE_COLUMNS, map(failure_row, FAILURES.values()))


def refusal_row(denied: type[Denied]) -> str:
    """The line of a refusal: its texts are those of A2A."""
    texts = ", or ".join(f"`{text}`" for text in texts_of(denied))
    when = " ".join(str(denied.__doc__).split()).removesuffix(".")
    return table_line((f"`{denied.reason}`", texts, when[:1].lower() + when[1:], denied.entry.kind.retry))


def code_row(denied: type[Denied]) -> str:
    """The statuses and codes of a refusal at surfaces that have their own."""
    of_http = [surface.wire.errors.status_and_code(denied) for surface in (operators, openai_api)]
    code = error_code_of(denied)
    http_codes = (f"{status} `{name}`" for status, name in of_http)
    return table_line((f"`{denied.reason}`", *http_codes, f"{code:d} `{code.name}`"))


def failure_row(entry: FailureReason) -> str:
    """The line of a failure."""
    own = "the agent's own text, else " if entry.reason in AGENTS_OWN_WORDS else ""
    text = f"{own}`{failure_text(entry.reason, 60)}`"
    counted = "yes" if entry.is_counted else "returned"
    return table_line((f"`{entry.reason}`", text, entry.when, counted, CLAIMS[entry.claim]))


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())


LIMIT_COLUMNS = ("What", "At most", "Counted", "Setting", "One more")


def limits_page() -> str:
    """The page with the table that the declarations make. Needs Django."""
    settings = {one.name: one for one in all_declarations()}
    return fill_table(LIMITS_PAGE.read_text(), LIMIT_COLUMNS, [limit_row(limit, settings) for limit in LIMITS])


def limit_row(limit: AccountLimit, settings: Mapping[str, Declaration]) -> str:
    setting = settings.get(limit.setting)
    number = setting.arguments["default"] if setting else limit.limit
    at_most = f"{number} {limit.unit}".rstrip()
    text = limit.counts or (setting.meaning if setting else "")
    counted = ": ".join(filter(None, ("in each process" if limit.is_of_process else "", text)))
    name = f"`{setting.name}`" if setting else "fixed"
    return table_line((limit.name, at_most, counted, name, limit.one_more))
