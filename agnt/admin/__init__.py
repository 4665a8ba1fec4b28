"""Networks for their owners: rules and venues to change, keys to revoke, bookings to move along, records."""

from agnt.admin import keys, records, venues

__all__ = ["keys", "records", "venues"]
