"""The pages of a network: what its owner reads and changes there, and that it is the owner's alone."""

import asyncio
import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from agnt.keys import find_key, load_signing_keys, mint_key
from agnt.models import ApiKey, Booking, Breaker, Interaction, KeyUsage, Network, UsageEvent, Venue
from agnt.networks import get_or_create_network
from agnt.venue_secrets import show_venue_secret
from tests.native.rows import Person, browser, make_agent
from tests.native.test_costs_page import read

NETWORK = "/desk/network"
PAGES = ("", "/venues", "/venues/new", "/venues/import", "/keys", "/bookings", "/revenue", "/log", "/rules")
FIELDS = {"name": "La Brisa", "slug": "la-brisa", "referral_fee_pct": "7", "priority_rank": "0", "is_active": "on"}


@pytest.fixture
def page(alice: Person) -> Client:
    """The browser of an owner."""
    return browser(alice.session)


@pytest.fixture
def network(alice: Person) -> Network:
    return get_or_create_network(alice.user)


def make_venue(network: Network, slug: str = "la-brisa", **fields: Any) -> Venue:
    return Venue.objects.create(network=network, slug=slug, **{"name": slug.title(), **fields})


def make_booking(venue: Venue, **fields: Any) -> Booking:
    return Booking.objects.create(network=venue.network, venue=venue, **{"sender": "my_agent_001", **fields})


def text_of(answer: Any) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def value_of(answer: Any, field: str) -> str:
    """What a field of a page holds."""
    found = re.search(rf'<input id="{field}" value="([^"]*)"', answer.content.decode())
    assert found is not None, text_of(answer)
    return found[1]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_needs_an_owner_and_makes_no_network(page: Client, path: str) -> None:
    assert page.get(NETWORK + path).status_code == 200
    assert not Network.objects.exists()
    answer = browser().get(NETWORK + path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/signin")


@pytest.mark.parametrize("kind", ["venues", "keys", "bookings"])
@pytest.mark.parametrize("posts", [False, True], ids=["read", "post"])
def test_what_is_anothers_is_absent(network: Network, bob: Person, kind: str, *, posts: bool) -> None:
    venue = make_venue(network)
    ids = {
        "venues": venue.public_id,
        "keys": mint_key(network.owner, "theirs").key.public_id,
        "bookings": make_booking(venue).public_id,
    }
    client = browser(bob.session)
    call = client.post if posts else client.get
    for named in (ids[kind], uuid4()):
        answer = call(f"{NETWORK}/{kind}/{named}", {"action": "delete", "status": "cancelled"})
        assert answer.status_code == 404
    assert Venue.objects.get().is_active
    assert Booking.objects.get().status == Booking.Status.PENDING
    assert ApiKey.objects.live().exists()


@pytest.mark.django_db(transaction=True)  # another thread reads the file
def test_lists_show_ones_own_rows_alone(network: Network, bob: Person) -> None:
    venue = make_venue(network, name="Secret garden")
    key = mint_key(network.owner, "Secret key").key
    make_booking(venue, key=key)
    Interaction.objects.create(
        network=network,
        key=key,
        at=timezone.now(),
        sender="secret_sender",
        status="ok",
        http_status=200,
        latency_ms=1,
    )
    for path in PAGES:
        assert "ecret" not in text_of(browser(bob.session).get(NETWORK + path)).replace("signing secret", ""), path
    assert export(browser(bob.session)).count("\n") == 1


def test_a_venue_is_added_changed_and_taken_out(page: Client, alice: Person) -> None:
    agent = make_agent(alice.user)
    typed = {**FIELDS, "tags": "sunset\r\ndinner", "agent": f"@{agent.handle}", "agent_name": "venue_agent"}
    assert page.post(f"{NETWORK}/venues/new", typed)["Location"] == f"{NETWORK}/venues"
    venue = Venue.objects.get()
    assert (venue.name, venue.tags, venue.agent, venue.is_active) == (
        "La Brisa",
        ["sunset", "dinner"],
        agent,
        True,
    )
    own = f"{NETWORK}/venues/{venue.public_id}"
    shown = page.get(own).content.decode()
    assert f'value="@{agent.handle}"' in shown
    assert "sunset\ndinner" in shown
    page.post(own, {**FIELDS, "name": "La Brisa Bali", "url": "https://venue.example/a2a"})
    venue.refresh_from_db()
    assert (venue.name, venue.agent, venue.url) == ("La Brisa Bali", None, "https://venue.example/a2a")
    version = Network.objects.get().venues_version
    for action, is_active in (("deactivate", False), ("activate", True)):
        assert page.post(own, {"action": action})["Location"] == own
        assert Venue.objects.get().is_active is is_active
    assert Network.objects.get().venues_version == version + 2
    assert page.post(own, {"action": "delete"})["Location"] == f"{NETWORK}/venues"
    assert not Venue.objects.exists()


def test_a_venue_with_bookings_is_kept_when_it_is_deleted(page: Client, network: Network) -> None:
    venue = make_venue(network)
    make_booking(venue)
    page.post(f"{NETWORK}/venues/{venue.public_id}", {"action": "delete"})
    assert Venue.objects.get().is_active is False
    assert "it is kept, and not offered any more" in text_of(page.get(f"{NETWORK}/venues"))


def test_the_secret_of_a_venue_with_a_url_is_shown_when_asked_for(page: Client, network: Network) -> None:
    venue = make_venue(network, url="https://venue.example/a2a")
    own, secret = f"{NETWORK}/venues/{venue.public_id}", show_venue_secret(str(venue.public_id))
    assert secret not in page.get(own).content.decode()
    answer = page.post(own, {"action": "secret"})
    assert answer.status_code == 200
    assert value_of(answer, "secret") == secret


def test_a_refused_venue_says_what_is_wrong_and_keeps_what_was_typed(page: Client, network: Network) -> None:
    make_venue(network, "taken")
    for typed, said in (
        ({"slug": "no slug"}, "Want letters, digits and any of . _ -"),
        ({"slug": "TAKEN"}, "Another venue has TAKEN."),
        ({"agent": "@owner/unknown"}, "There is no such agent of yours, and no public one."),
        ({"referral_fee_pct": "101"}, "Want a number from 0 to 100"),
        ({"name": ""}, "This field is required."),
    ):
        answer = page.post(f"{NETWORK}/venues/new", {**FIELDS, "city": "Bali", **typed})
        assert answer.status_code == 400
        assert said in text_of(answer), typed
        assert 'value="Bali"' in answer.content.decode()
    assert Venue.objects.get().slug == "taken"


def test_venues_are_found_by_words_category_place_and_state(page: Client, network: Network) -> None:
    make_venue(network, "la-brisa", category="restaurant", area="Canggu")
    make_venue(network, "the-lawn", category="beach club", city="Bali", is_active=False)
    Breaker.objects.create(network=network, venue=Venue.objects.get(slug="la-brisa"), opened_at_s=1)
    assert "circuit open" in text_of(page.get(f"{NETWORK}/venues"))
    for query, found in (
        ("q=LAWN", {"The-Lawn"}),
        ("category=restaurant", {"La-Brisa"}),
        ("location=ali", {"The-Lawn"}),
        ("state=active", {"La-Brisa"}),
        ("state=inactive&q=brisa", set()),
        ("state=unknown", {"La-Brisa", "The-Lawn"}),
    ):
        said = text_of(page.get(f"{NETWORK}/venues?{query}"))
        assert {name for name in ("La-Brisa", "The-Lawn") if name in said} == found, query


def test_the_pages_of_a_list_keep_its_filters(page: Client, network: Network) -> None:
    for number in range(51):
        make_venue(network, f"v{number}", city="Bali")
    assert "?location=Bali&amp;page=2#venues" in page.get(f"{NETWORK}/venues?location=Bali").content.decode()
    assert "1 venue" in text_of(page.get(f"{NETWORK}/venues?q=v50"))


def upload(page: Client, text: str, **fields: str) -> Any:
    file = SimpleUploadedFile("venues.csv", text.encode(), "text/csv")
    return page.post(f"{NETWORK}/venues/import", {"file": file, **fields})


@pytest.mark.django_db(transaction=True)  # another thread reads the file
def test_an_import_reports_its_wrong_rows_and_an_export_is_imported_again(page: Client) -> None:
    rows = "slug,name,priority_rank\nla-brisa,La Brisa,5\nthe-lawn,,1\n"
    answer = upload(page, rows)
    assert answer.status_code == 400
    assert "Nothing was imported 1 row is wrong" in text_of(answer)
    assert "3 name A venue has a name." in text_of(answer)
    assert not Venue.objects.exists()
    assert "1 venue added, 0 changed" in text_of(upload(page, rows, skips_bad_rows="on"))
    again = upload(page, export(page))
    assert "0 venues added, 0 changed, 1 as it was" in text_of(again)
    assert Venue.objects.get().priority_rank == 5


def export(page: Client) -> str:
    """The file of venues."""
    answer: Any = page.get(f"{NETWORK}/venues.csv")
    assert answer["Content-Disposition"] == 'attachment; filename="venues.csv"'
    return asyncio.run(read(answer.streaming_content))


@pytest.mark.parametrize("text", ["", "slug\nx\n", "slug,name,colour\nx,y,z\n"])
def test_a_file_that_is_none_is_refused_whole(page: Client, text: str) -> None:
    answer = upload(page, text)
    assert answer.status_code == 400
    assert "Nothing was imported. Line 1:" in text_of(answer)


def test_a_key_is_shown_once_with_its_secret(page: Client, alice: Person) -> None:
    typed = {
        "name": "Trips",
        "tier": "pro",
        "scope": "booking",
        "customer": "trips",
        "senders": "a_1\nb_2",
        "days": "9",
    }
    answer = page.post(f"{NETWORK}/keys", typed)
    token, secret = value_of(answer, "token"), value_of(answer, "secret")
    found = find_key(token)
    assert found is not None
    assert (found.tier, found.scope, found.customer, found.senders) == ("pro", "booking", "trips", ["a_1", "b_2"])
    assert load_signing_keys(found).current == bytes.fromhex(secret)
    key = ApiKey.objects.get(pk=found.key_id)
    assert timedelta(days=8) < key.credential.expires_at - timezone.now() < timedelta(days=10)  # type: ignore[operator]
    for path in (f"{NETWORK}/keys", f"{NETWORK}/keys/{key.public_id}"):
        shown = page.get(path).content.decode()
        assert "Trips" in shown
        assert "good until" in shown
        assert token not in shown
        assert secret not in shown


def test_a_refused_key_is_not_made(page: Client, settings: Any) -> None:
    for typed, said in (
        ({"name": ""}, "This field is required."),
        ({"senders": "no name"}, "Want names of 1 to 128"),
        ({"tier": "gold"}, "gold is not one of the available choices"),
        ({"days": "0"}, "greater than or equal to 1"),
    ):
        answer = page.post(f"{NETWORK}/keys", {"name": "Trips", "tier": "free", "scope": "query", **typed})
        assert answer.status_code == 400
        assert said in text_of(answer)
    settings.TOKENS_PER_OWNER = 1
    answer = page.post(f"{NETWORK}/keys", {"name": "Trips", "tier": "free", "scope": "query"})
    assert answer.status_code == 429
    assert "are the most: remove some first." in text_of(answer)
    assert not ApiKey.objects.exists()


def test_what_a_key_may_do_is_changed_on_its_page(page: Client, alice: Person) -> None:
    minted = mint_key(alice.user, "Trips", customer="trips", senders=["a_1"])
    own = f"{NETWORK}/keys/{minted.key.public_id}"
    shown = page.get(own).content.decode()
    assert 'name="customer" value="trips"' in shown
    assert re.search(r'value="free"[^>]* checked', shown)
    typed = {"action": "change", "tier": "pro", "scope": "booking", "customer": "", "senders": "b_2\nc_3"}
    assert page.post(own, typed).status_code == 302
    found = find_key(minted.token)
    assert found is not None
    assert (found.tier, found.scope, found.senders) == ("pro", "booking", ["b_2", "c_3"])
    assert found.customer == f"key-{minted.key.public_id}"
    assert "Trips is changed" in text_of(page.get(own))
    for wrong, said in (
        ({"tier": "gold"}, "gold is not one of the available choices"),
        ({"senders": "no name"}, "Want names of 1 to 128"),
    ):
        answer = page.post(own, typed | wrong)
        assert answer.status_code == 400
        assert said in text_of(answer)
    page.post(own, {"action": "revoke"})
    assert page.post(own, typed | {"tier": "enterprise"}).status_code == 400
    assert ApiKey.objects.get().tier == "pro"


def test_a_new_secret_is_shown_once_and_the_present_one_goes_on(page: Client, alice: Person) -> None:
    minted = mint_key(alice.user, "Trips")
    own = f"{NETWORK}/keys/{minted.key.public_id}"
    answer = page.post(own, {"action": "rotate", "overlap": "3600"})
    found = find_key(minted.token)
    assert found is not None
    signing = load_signing_keys(found)
    assert signing.current.hex() == value_of(answer, "secret") != minted.secret
    assert signing.previous.hex() == minted.secret
    assert 3500 < signing.previous_until_s - timezone.now().timestamp() < 3700
    assert page.post(own, {"action": "unknown"}).status_code == 400
    assert value_of(answer, "secret") not in page.get(own).content.decode()


def test_a_revoked_key_leaves_the_list_and_stays_readable(page: Client, alice: Person) -> None:
    minted = mint_key(alice.user, "Lost laptop")
    own = f"{NETWORK}/keys/{minted.key.public_id}"
    page.post(own, {"action": "revoke"})
    assert find_key(minted.token) is None
    page.get(f"{NETWORK}/keys")  # says that it was revoked
    assert "Lost laptop" not in text_of(page.get(f"{NETWORK}/keys"))
    assert "Lost laptop" in text_of(page.get(f"{NETWORK}/keys?ended=1"))
    secret_before = ApiKey.objects.get().secret
    assert page.post(own, {"action": "rotate"}).status_code == 400
    assert ApiKey.objects.get().secret == secret_before


def test_usage_today_is_shown_by_key_and_tier(page: Client, alice: Person) -> None:
    for name, calls in (("First", 30), ("Second", 12)):
        key = mint_key(alice.user, name, tier=ApiKey.Tier.PRO).key
        KeyUsage.objects.create(key=key, day=timezone.now().date(), calls=calls)
        KeyUsage.objects.create(key=key, day=timezone.now().date() - timedelta(days=1), calls=1000)
    assert "12 of 10,000 envelopes today" in text_of(page.get(f"{NETWORK}/keys"))
    overview = text_of(page.get(NETWORK))
    assert "Envelopes today 42" in overview
    assert "Pro 2 42 30 10,000" in overview
    assert "Free 0 0 0 100" in overview
    assert "12 1,000" not in (one := text_of(page.get(f"{NETWORK}/keys/{key.public_id}")))
    assert "1,000" in one


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ("pending", "confirmed", "confirmed"),
        ("pending", "cancelled", "cancelled"),
        ("confirmed", "completed", "completed"),
        ("confirmed", "no_show", "no_show"),
        ("pending", "completed", "pending"),
        ("cancelled", "confirmed", "cancelled"),
        ("pending", "unknown", "pending"),
    ],
)
def test_an_owner_acts_on_a_booking(page: Client, network: Network, before: str, wanted: str, after: str) -> None:
    booking = make_booking(make_venue(network), status=before)
    own = f"{NETWORK}/bookings/{booking.public_id}"
    assert page.post(own, {"status": wanted})["Location"] == own
    booking.refresh_from_db()
    assert booking.status == after
    assert ("Nothing is changed" in text_of(page.get(own))) is (after != wanted)


def test_a_list_offers_what_is_possible_and_is_come_back_to(page: Client, network: Network) -> None:
    booking = make_booking(make_venue(network), user_note="window seat", party_size=2)
    listed = page.get(f"{NETWORK}/bookings?status=pending").content.decode()
    assert 'name="list" value="status=pending"' in listed
    assert re.findall(r'name="status" value="(\w+)"', listed) == ["confirmed", "cancelled"]
    sent = {"status": "confirmed", "list": "status=pending&x=\r\nSet-Cookie: y"}
    back = page.post(f"{NETWORK}/bookings/{booking.public_id}", sent)["Location"]
    assert back == f"{NETWORK}/bookings?status=pending&x=%0D%0ASet-Cookie%3A+y#bookings"
    assert "No booking like this." in text_of(page.get(f"{NETWORK}/bookings?status=pending"))


def test_bookings_are_found_by_status_venue_key_and_sender(page: Client, network: Network) -> None:
    key = mint_key(network.owner, "Trips").key
    make_booking(make_venue(network), key=key, sender="concierge", status="confirmed")
    make_booking(make_venue(network, "the-lawn"))
    for query, found in (
        ("status=confirmed", {"concierge"}),
        ("venue=lawn", {"my_agent_001"}),
        (f"key={key.public_id}", {"concierge"}),
        ("from=my_agent_001", {"my_agent_001"}),
        ("key=none&status=none", {"concierge", "my_agent_001"}),
    ):
        said = re.sub(
            r"<form class=\"filter\".*?</form>",
            "",
            page.get(f"{NETWORK}/bookings?{query}").content.decode(),
            flags=re.S,
        )
        assert {name for name in ("concierge", "my_agent_001") if name in said} == found, query


def test_revenue_is_summed_by_day_customer_key_and_venue(page: Client, network: Network) -> None:
    venue, key, now = make_venue(network), mint_key(network.owner, "Trips").key, timezone.now()
    for number, customer in enumerate(["trips", "trips", "concierge"]):
        UsageEvent.objects.create(
            network=network,
            booking=make_booking(venue),
            key=key if number else None,
            customer=customer,
            amount_cents=25,
            at=now - timedelta(days=8 * (number == 0)),
        )
    week, month = (text_of(page.get(f"{NETWORK}/revenue?days={days}")) for days in (7, 30))
    assert "Last 7 days: $0.50, 2 bookings" in week
    assert "Last 30 days: $0.75, 3 bookings" in month
    assert "trips $0.50 2 concierge $0.25 1" in month
    assert "Trips $0.50 2 a key that is gone $0.25 1" in text_of(page.get(f"{NETWORK}/revenue?days=30&by=key"))
    assert "La-Brisa $0.75 3" in text_of(page.get(f"{NETWORK}/revenue?days=30&by=venue"))
    assert "$0.50" in text_of(page.get(NETWORK))


def test_the_log_is_filtered_by_what_a_row_has(page: Client, network: Network) -> None:
    key, venue, now = mint_key(network.owner, "Trips").key, make_venue(network), timezone.now()
    rows: dict[str, dict[str, Any]] = {
        "searcher": {"intent": "booking.search", "status": "ok"},
        "booker": {
            "intent": "booking.confirm",
            "status": "circuit_open",
            "venue": venue,
            "metadata": {"dropped": ["x"]},
        },
        "repeater": {"intent": "booking.confirm", "status": "duplicate", "key": key},
        "earlier": {"intent": "network.ping", "status": "ok", "at": now - timedelta(days=3)},
    }
    for sender, fields in rows.items():
        values = {"at": now, "http_status": 200, "latency_ms": 3, **fields}
        Interaction.objects.create(network=network, sender=sender, recipient="network:agnt", **values)
    day = (now - timedelta(days=3)).date().isoformat()
    for query, found in (
        ("", set(rows)),
        ("status=ok", {"searcher", "earlier"}),
        ("status=errors", {"booker"}),
        ("status=circuit_open", {"booker"}),
        ("intent=booking.confirm", {"booker", "repeater"}),
        (f"key={key.public_id}", {"repeater"}),
        ("from=searcher", {"searcher"}),
        ("venue=brisa", {"booker"}),
        (f"day={day}", {"earlier"}),
        ("day=yesterday&status=unknown", set(rows)),
    ):
        answer = page.get(f"{NETWORK}/log?{query}")
        table = re.sub(r"<form class=\"filter\".*?</form>", "", answer.content.decode(), flags=re.S)
        assert {sender for sender in rows if sender in table} == found, query
    assert "dropped x" in text_of(page.get(f"{NETWORK}/log"))


def test_a_day_of_the_log_is_one_of_the_visitors_zone(page: Client, network: Network) -> None:
    at = timezone.now().replace(hour=23) - timedelta(days=2)
    Interaction.objects.create(
        network=network, sender="night_owl", at=at, status="ok", http_status=200, latency_ms=1
    )
    day, next_day = at.date().isoformat(), (at + timedelta(days=1)).date().isoformat()
    for query, is_found in (
        (f"day={day}", True),
        (f"day={day}&tz=Asia/Makassar", False),
        (f"day={next_day}&tz=Asia/Makassar", True),
    ):
        said = text_of(page.get(f"{NETWORK}/log?{query}"))
        assert ("night_owl" in said) is is_found, query


def test_the_rules_of_a_network_are_saved(page: Client, alice: Person) -> None:
    answer = page.post(f"{NETWORK}/rules", {"requires_signature": "on", "interactions_kept_days": "30"})
    assert answer.status_code == 302
    network = Network.objects.get(owner=alice.user)
    assert (network.is_strict, network.requires_signature) == (False, True)
    assert network.interactions_kept_days == 30
    assert page.post(f"{NETWORK}/rules", {"interactions_kept_days": "0"}).status_code == 400


def test_the_desk_and_the_documentation_lead_to_the_pages(page: Client) -> None:
    assert f'href="{NETWORK}"' in page.get("/desk").content.decode()
    assert 'href="/demos/agnt/"' in browser().get("/docs").content.decode()
    assert browser().get("/demos/agnt/").status_code == 200
