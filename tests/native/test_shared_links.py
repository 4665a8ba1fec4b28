"""Links to shared answers that a client guesses."""

import pytest

from tests.native.rows import Person, browser
from tests.native.test_answer_shares import make_share

pytestmark = pytest.mark.django_db


def test_a_client_that_guesses_links_is_refused_also_where_it_guessed_right(alice: Person) -> None:
    made = make_share(alice)
    guesser, reader = browser(REMOTE_ADDR="203.0.113.7"), browser(REMOTE_ADDR="203.0.113.8")
    statuses = [guesser.get(f"/s/{number:032x}").status_code for number in range(12)]
    assert (statuses[0], statuses[-1]) == (404, 429)
    refused = guesser.get(f"/s/{made.token}")
    assert (refused.status_code, refused["Retry-After"].isdigit()) == (429, True)
    assert guesser.get(f"/api/v1/shared-links/{made.token}").status_code == 429
    for _ in range(20):
        assert reader.get(f"/s/{made.token}").status_code == 200
