"""Administrators: the active members of the staff, of whom the hub keeps at least one (docs/adr/0157)."""

from accounts.models import User


def lock_administrators() -> set[int]:
    """The ids of all administrators, whose rows stay locked until the transaction ends.

    Of two concurrent transactions that take rights away, the second reads the result of the first.
    """
    # FOR NO KEY UPDATE: an open ask, whose session the transaction may wait for, may still reference these users.
    locked = User.objects.select_for_update(no_key=True).order_by("pk")
    return set(locked.filter(is_staff=True, is_active=True).values_list("pk", flat=True))
