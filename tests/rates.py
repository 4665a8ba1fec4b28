"""The counts by which the hub limits sign-ins, guesses and mails; tests in process have them in memory."""

from limits.storage import MemoryStorage

from accounts import throttle


def age_counts(seconds: float) -> None:
    """Date back everything that was counted, as if this time had passed."""
    storage = throttle._limiter().storage
    assert isinstance(storage, MemoryStorage)
    for hits in list(storage.events.values()):
        for hit in hits:
            hit.atime -= seconds
            hit.expiry -= seconds
