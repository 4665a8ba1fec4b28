"""Writes the rules that say of what an owner is alerted. Pages and REST call it."""

from collections.abc import Mapping

from django.db import transaction

from accounts.models import User
from agents.models import AlertRule
from agents.models.alert import MAX_FAILURE_TIMES, MAX_OFFLINE_MINUTES, AlertKind

HIGHEST: Mapping[AlertKind, int] = {
    AlertKind.OFFLINE: MAX_OFFLINE_MINUTES,
    AlertKind.BUDGET: 100,
    AlertKind.FAILURES: 100,
    AlertKind.NEW_FAILURE: MAX_FAILURE_TIMES,
}


def load_rules(owner: User) -> dict[AlertKind, int]:
    """The thresholds of the kinds of alert that an owner switched on, in the order of the kinds."""
    rows = dict(AlertRule.objects.filter(owner=owner).values_list("kind", "threshold"))
    return {kind: rows[kind] for kind in AlertKind if kind in rows}


def set_rule(owner: User, kind: AlertKind, threshold: int) -> None:
    """Switch a kind of alert on, or change its threshold."""
    _write(owner, {kind: threshold})


def remove_rule(owner: User, kind: AlertKind) -> None:
    """Switch a kind of alert off; its open alerts end."""
    AlertRule.objects.filter(owner=owner, kind=kind).delete()


@transaction.atomic
def set_rules(owner: User, rules: Mapping[AlertKind, int]) -> None:
    """Switch on these kinds of alert, and switch all others off."""
    AlertRule.objects.filter(owner=owner).exclude(kind__in=rules).delete()
    _write(owner, rules)


def _write(owner: User, rules: Mapping[AlertKind, int]) -> None:
    AlertRule.objects.bulk_create(
        [AlertRule(owner=owner, kind=kind, threshold=threshold) for kind, threshold in rules.items()],
        update_conflicts=True,
        unique_fields=["owner", "kind"],
        update_fields=["threshold"],
    )
