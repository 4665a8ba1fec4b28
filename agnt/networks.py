"""Networks of owners, each with the service user that asks the agents of its venues."""

from django.db import transaction

from accounts.models import User
from accounts.quotas import lock_owner
from agnt.models import Network
from kit.ids import random_hex

SERVICE_PREFIX = "agnt-"


def find_network(owner: User) -> Network | None:
    """The network of an owner, if there is one."""
    return Network.objects.filter(owner=owner).first()


@transaction.atomic
def get_or_create_network(owner: User) -> Network:
    """The network of an owner, made with its service user when there is none."""
    lock_owner(owner.pk)  # of two that make it at once, the second finds it
    if found := find_network(owner):
        return found
    service_user = User.objects.create(login=SERVICE_PREFIX + random_hex(8), is_service=True)
    return Network.objects.create(owner=owner, service_user=service_user)
