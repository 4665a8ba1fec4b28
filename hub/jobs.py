"""Work on whole accounts that must be done whatever process lives. May run twice, or late."""

from celery import shared_task

from hub.estate import erasing


@shared_task(name="hub.erase_closed", ignore_result=True)
def erase_closed() -> int:
    """Erase what closed accounts left; how many accounts."""
    return erasing.erase_closed()
