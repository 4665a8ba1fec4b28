"""An AGNT network to measure: its venues, and the keys that ask for them (`lab.in_django`)."""

from collections.abc import Iterator

from django.db import transaction

from accounts import tokens
from agnt.models import ApiKey, Network, Venue
from agnt.service.keys import mint_key
from agnt.service.networks import get_or_create_network
from lab.bench.seed import write_rows
from lab.bench.venue_words import CATEGORIES, PLACES, WORDS, WORDS_A_VENUE, name_venue, slug_of

KEYS = 4  # so that no daily limit ends a long run


@transaction.atomic
def seed(count: int) -> list[dict[str, str]]:
    """A network with so many venues; the text and the signing secret of each of its keys."""
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
