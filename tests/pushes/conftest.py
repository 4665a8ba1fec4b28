"""For tests of the rows: a caller, and a hub that may send on this machine."""

from tests.native import conftest as people
from tests.webhooks import conftest as webhooks

alice, _own_network = people.alice, webhooks._own_network
