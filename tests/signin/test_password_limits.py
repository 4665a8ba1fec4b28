"""How many passwords of a login may be tried in a minute and an hour, by one address and by many."""

import pytest
from django.test import RequestFactory

from accounts import throttle
from accounts.errors import TooFast
from tests.attempts import Attempts
from tests.rates import age_counts

pytestmark = pytest.mark.attack

MINUTES, SHORT_HOUR, TRIES = 100, 50, 12  # 100 minutes have two hours' passwords, but not three


@pytest.fixture(autouse=True)
def _no_counts() -> None:
    throttle._limiter.cache_clear()


def may_try(address: str) -> bool:
    try:
        throttle.check_passwords(RequestFactory().post("/signin/password", REMOTE_ADDR=address), "ann")
    except TooFast:
        return False
    return True


def check_taken(taken: list[int], per_minute: int, per_hour: int, attempts: Attempts, tries: int) -> None:
    """`taken`: of each minute, the number of passwords that the hub would have checked."""
    in_an_hour = [sum(taken[minute : minute + SHORT_HOUR]) for minute in range(MINUTES - SHORT_HOUR)]
    attempts.count("passwords guessed", tries, max(0, max(in_an_hour) - per_hour))
    assert (max(taken), max(in_an_hour), sum(taken)) == (per_minute, per_hour, 2 * per_hour)


def test_one_address_guesses_few_passwords_an_hour_and_never_locks_a_user_out(attempts: Attempts) -> None:
    taken = []
    for minute in range(MINUTES):
        taken.append(sum(may_try("192.0.2.1") for _ in range(TRIES)))
        assert minute % 10 or may_try("198.51.100.1"), "the user is locked out"
        age_counts(61)
    limits = (throttle.PASSWORDS_OF_ADDRESS_PER_MINUTE, throttle.PASSWORDS_OF_ADDRESS_PER_HOUR)
    assert limits == (5, 20)
    check_taken(taken, *limits, attempts, MINUTES * TRIES)


def test_many_addresses_guess_few_passwords_of_a_login_an_hour(attempts: Attempts) -> None:
    taken = []
    for minute in range(MINUTES):
        taken.append(sum(may_try(f"10.0.{minute}.{number}") for number in range(4) for _ in range(TRIES)))
        age_counts(61)
    limits = (throttle.PASSWORDS_PER_MINUTE, throttle.PASSWORDS_PER_HOUR)
    assert limits == (10, 60)
    check_taken(taken, *limits, attempts, MINUTES * 4 * TRIES)
