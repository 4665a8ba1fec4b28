"""Work of the gateway that must be done whatever process lives. Every job may run twice, late, or at once."""

from celery import shared_task

from gateway import letter_queue, letters
from gateway.sessions import writing
from kit import batches

OVERDUE_S = 20.0  # web processes end letters in time, and can tell the senders


@shared_task(name="gateway.tend_letters", ignore_result=True)
def tend_letters() -> int:
    """End letters whose time is up, and store replies that their senders did not take; how many."""
    return letter_queue.expire_due(overdue_s=OVERDUE_S) + letter_queue.store_untaken_replies()


@shared_task(name="gateway.forget_letters", ignore_result=True)
def forget_letters(letters_kept_days: int) -> int:
    """Delete letters that were delivered or died, that long after they came; how many."""
    return batches.delete(letters.find_old_letters(letters_kept_days))


@shared_task(name="gateway.forget_sessions", ignore_result=True)
def forget_sessions(kept_days: int) -> int:
    """Delete sessions to which nothing was added for that long; how many rows went."""
    return writing.forget_old(kept_days)
