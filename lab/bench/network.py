"""`python -m lab.bench.network VENUES`, with the environment of a hub: a network with venues and keys, as JSON.

The answer is the text and the signing secret of each key.
"""

import json
import os
import sys
from collections.abc import Iterator

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
django.setup()

from django.db import transaction  # noqa: E402

from accounts import tokens  # noqa: E402
from agnt.models import ApiKey, Network, Venue  # noqa: E402
from agnt.service.keys import mint_key  # noqa: E402
from agnt.service.networks import get_or_create_network  # noqa: E402
from lab.bench.crowd import write_rows  # noqa: E402
from lab.bench.venue_words import CATEGORIES, PLACES, WORDS, WORDS_A_VENUE, name_venue, slug_of  # noqa: E402

KEYS = 4  # so that no daily limit ends a long run


@transaction.atomic
def seed(count: int) -> list[dict[str, str]]:
    """Make them all in one go."""
    owner = tokens.get_or_create_local_user("bench-network")
    network = get_or_create_network(owner)
    write_rows(Venue, _venues(network, count))
    Network.objects.filter(pk=network.pk).note_venue_change()
    tier, scope = ApiKey.Tier.ENTERPRISE, ApiKey.Scope.FULL
    keys = [mint_key(owner, f"bench-{number}", tier=tier, scope=scope) for number in range(KEYS)]
    return [{"token": key.token, "secret": key.secret} for key in keys]


def _venues(network: Network, count: int) -> Iterator[Venue]:
    for number in range(count):
        area, city = PLACES[number % len(PLACES)]
        words = [WORDS[(number * 7 + step * 5) % len(WORDS)] for step in range(WORDS_A_VENUE)]
        yield Venue(
            network=network,
            slug=slug_of(number),
            name=name_venue(number),
            description=f"A place for {' and '.join(words)}, open every day.",
            category=CATEGORIES[number % len(CATEGORIES)],
            area=area,
            city=city,
            tags=words[:3],
            price_range="$" * (1 + number % 4),
            priority_rank=number % 10,
        )


if __name__ == "__main__":
    json.dump(seed(int(sys.argv[1])), sys.stdout)
