"""Rows of every table with vectors in every column of texts, on every page that shows them, and in the admin."""

from collections import Counter, defaultdict
from urllib.parse import quote, urlencode

import pytest
from django.apps import apps
from django.urls import get_resolver

from tests.attempts import Attempts
from tests.browser.chrome import IN_BROWSER
from tests.browser.hostile import Hostile
from tests.browser.hostile_pages import paths
from tests.browser.hostile_rows import VECTORS_AT_MOST
from tests.browser.looking import Looking, Rows
from tests.browser.vectors import RUN, VECTORS

pytestmark = [*IN_BROWSER, pytest.mark.attack, pytest.mark.deep, pytest.mark.timeout(900)]

# The same for every user, and without a text of one.
SAME_FOR_ALL = ("/docs", "/limits", "/health", "/join/", "/groups/join/", "/demos/agnt/", "/signin", "/consent")
ABSENT = "absent"
# Columns that no page shows as these rows have them. `test_injection_everywhere.py` shows tasks, threads, shared
# answers, and what operators say; the others leave the hub by its APIs alone.
HIDDEN = {
    "a2a_bridge": "AnswerShare.content AnswerShare.context_id Push.last_error Push.payload PushConfig.url "
    "SendKey.result StoredEvent.body StoredTask.context_id StoredTask.snapshot ThreadTask.question",
    "accounts": "LoginCode.app_name LoginCode.machine_id Passkey.credential_id Passkey.public_key "
    "ProviderIdentity.username User.avatar_url",
    "agents": "File.mime FollowUp.context_id FollowUp.text Mail.contents Mail.message_id Mail.subject "
    "OpMessage.mentions OpMessage.text PermissionRequest.message RemoteName.ours RemoteName.theirs "
    "TokenUsage.cc_session_id TokenUsage.model Turn.failure_text",
    "agnt": "Cancellation.customer Cancellation.sender Invoice.external_id SeenEnvelope.answer "
    "SeenEnvelope.customer SeenEnvelope.sender",
    "gateway": "Letter.addressed_to Letter.correlation_id Letter.envelope "
    "ProtocolArtifact.file_name ProtocolArtifact.mime ProtocolArtifact.relative_path ProtocolStep.input "
    "ProtocolStep.output ProtocolTask.additional_input ProtocolTask.input",
}
NOT_SHOWN = {f"{app}.{name}" for app, names in HIDDEN.items() for name in names.split()}
# Columns whose texts pages show in part; more rows show all payloads in some of them.
CUT = {
    "a2a_bridge.RecordedExchange.request_body", "a2a_bridge.RecordedExchange.response_body",
    "a2a_bridge.ThreadTask.answer", "accounts.Credential.user_agent", "agents.Event.payload",
    "agents.FailureGroup.shape", "agents.PermissionRequest.input_preview", "agents.RemoteCard.approved",
    "agents.RemoteCard.waiting",
}  # fmt: skip
CALLING = [vector for vector in VECTORS if RUN in vector]


async def test_no_row_does_anything_on_any_page(looking: Looking, rows: Rows, attempts: Attempts) -> None:
    await look_as_owners(looking, rows.owners)
    attempts.count("pages of users whose rows have payloads in every column of texts", looking.pages)
    of_owners = looking.pages
    await look_as_staff(looking, rows, has_all=attempts.is_long)
    attempts.count("pages of the admin with these rows", looking.pages - of_owners)
    looking.end()
    shown = Counter(rows.columns[number // VECTORS_AT_MOST] for number in looking.shown)
    tried = {label: number if label in CUT else rows.tried[label] for label, number in shown.items()}
    for app, number in sum_by_app(tried).items():
        attempts.count(f"payloads in columns of `{app}` that pages show", number)
    assert looking.faults == []
    assert {rows.tried[label] for label in shown} == {len(VECTORS)}
    assert {label for label, number in shown.items() if number < len(CALLING)} <= CUT
    assert set(rows.tried) - set(shown) <= NOT_SHOWN


async def look_as_owners(looking: Looking, owners: list[dict[str, str]]) -> None:
    """Open the pages of each owner."""
    queries = Hostile([one for one in VECTORS if len(one) <= 200])
    for number, owner in enumerate(owners):
        await looking.visitor.be(owner["token_of_session"])
        found = defaultdict(lambda: ABSENT, owner, webhook=owner["told"])
        far = f"/desk/agents/{owner['far']}"
        for path in [*paths(queries, found), far, f"{far}/remote"]:
            if ABSENT not in path and (number == 0 or not path.startswith(SAME_FOR_ALL)):
                await looking.open(path, shows_live=path == f"/desk/sessions/{owner['session']}")


async def look_as_staff(looking: Looking, rows: Rows, *, has_all: bool) -> None:
    """Open lists and rows of each table of the admin; `has_all`: also histories, second pages and searches."""
    await looking.visitor.be(rows.hub.mint("chief", "session", admin=True))
    words = Hostile(VECTORS)
    for table in sorted(tables_in_admin()):
        of_table = f"/admin/{table.replace('.', '/')}"
        queries: list[dict[str, str]] = [{}, {"p": "2"}, {"q": words.text(200)}, {words.text(40): words.text(200)}]
        for query in queries if has_all else queries[:1]:
            await looking.open(f"{of_table}/?{urlencode(query)}")
        [first, *others] = [quote(key, safe="") for key in rows.keys[table]] or [""]
        pages = [f"{first}/change", f"{first}/history", f"{first}/delete", *(f"{one}/change" for one in others)]
        for page in (pages if has_all else pages[:1]) if first else ():
            await looking.open(f"{of_table}/{page}/")


def tables_in_admin() -> set[str]:
    """The labels of tables that have a list in the admin."""
    names = get_resolver().namespace_dict["admin"][1].reverse_dict
    tables = [model._meta for model in apps.get_models()]
    return {one.label_lower for one in tables if f"{one.app_label}_{one.model_name}_changelist" in names}


def sum_by_app(tried: dict[str, int]) -> Counter[str]:
    """The number of payloads in the columns of each app."""
    total: Counter[str] = Counter()
    for label, number in tried.items():
        total[label.partition(".")[0]] += number
    return total
