"""Administrators: the active members of the staff, of whom the hub keeps at least one (docs/adr/0157)."""

from accounts.models import User


def lock_administrators() -> set[int]:
    """The ids of all administrators, whose rows stay locked until the transaction ends.

    Of two transactions that take rights away at once, the second one reads what the first one left.
    """
    # Without the key: an ask under way, whose session the transaction may wait for, may still name these users.
    locked = User.objects.select_for_update(no_key=True).order_by("pk")
    return set(locked.filter(is_staff=True, is_active=True).values_list("pk", flat=True))
