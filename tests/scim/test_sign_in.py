"""People whom SCIM has provided sign in by OpenID Connect; a claim at sign-in makes them members of groups."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts import groups
from accounts.models import Membership, ProviderIdentity, ScimUser, User
from accounts.scim_tokens import end_scim_token
from accounts.signup import read_providers, read_signup
from tests.native.rows import browser, person
from tests.oidc import GONE, Oidc, me, sign_in_by_oidc
from tests.scim.conftest import Directory
from tests.signin.conftest import _oidc, oidc  # noqa: F401

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def closed(oidc: Oidc, settings: Any) -> Oidc:  # noqa: F811
    """The provider of a hub that takes no new users but those of SCIM."""
    settings.SIGNUP = read_signup("closed")
    return oidc


def make_group(slug: str, claim: str = "") -> Any:
    """A group of root's that a value of the claim makes members of."""
    group = groups.create_group(slug, slug, made_by=person("root").user)
    groups.set_claim_value(group, claim, by=None)
    return group


def groups_of(login: str) -> set[str]:
    """The groups of a user."""
    return set(Membership.objects.filter(user__login=login).values_list("group__account__login", flat=True))


@pytest.mark.parametrize(
    ("resource", "claims"),
    [
        ({"userName": "ann@example.org", "externalId": "ann"}, {}),
        ({"userName": "ann@example.org", "externalId": "object-1"}, {"sub": "pairwise", "oid": "object-1"}),
        ({"userName": "Ann@example.org"}, {"preferred_username": "ann@EXAMPLE.org"}),
        ({"userName": "ann@example.org"}, {"email": "Ann@example.org", "email_verified": True}),
    ],
    ids=["the subject", "Entra's object id", "the user name", "a verified address"],
)
def test_a_provided_user_signs_in_to_the_provided_account(
    closed: Oidc, directory: Directory, resource: dict[str, str], claims: dict[str, Any]
) -> None:
    made = directory.create("Users", **resource)
    closed.claims |= claims
    client = browser()
    assert sign_in_by_oidc(client).status_code == 302
    assert me(client)["id"] == ScimUser.objects.get(pk=made["id"]).user_id
    assert sign_in_by_oidc(browser()).status_code == 302
    assert ProviderIdentity.objects.count() == 1


@pytest.mark.parametrize(
    "claims",
    [
        {"preferred_username": "eve"},
        {"nickname": "ann@example.org"},
        {"email": "ann@example.org", "email_verified": False},
        {"oid": ""},
    ],
)
def test_another_person_does_not(closed: Oidc, directory: Directory, claims: dict[str, Any]) -> None:
    directory.create("Users", userName="ann@example.org", externalId="ann")
    closed.person = "eve"
    closed.claims |= claims
    assert sign_in_by_oidc(browser()).status_code == 403


def test_a_second_person_of_the_same_name_does_not(closed: Oidc, directory: Directory) -> None:
    directory.create("Users", userName="ann@example.org")
    closed.claims["preferred_username"] = "ann@example.org"
    assert sign_in_by_oidc(browser()).status_code == 302
    closed.person = "another"
    assert sign_in_by_oidc(browser()).status_code == 403


def test_another_provider_does_not_vouch_for_users_of_scim(
    closed: Oidc, directory: Directory, settings: Any
) -> None:
    directory.create("Users", userName="ann@example.org", externalId="ann")
    other = closed.provider(2, "Other")
    settings.OIDC_PROVIDERS = (*read_providers("https://other.example", "i", "s", ""), other)
    assert sign_in_by_oidc(browser(), "/api/v1/auth/oidc/2/start").status_code == 403
    with pytest.raises(CommandError, match="name the provider"):
        call_command("scim_token")
    with pytest.raises(CommandError, match="no provider of OIDC_ISSUER"):
        call_command("scim_token", issuer="https://third.example")
    call_command("scim_token", issuer=closed.url)
    assert sign_in_by_oidc(browser(), "/api/v1/auth/oidc/2/start").status_code == 302
    assert end_scim_token()


def test_a_deactivated_user_does_not_sign_in(closed: Oidc, directory: Directory) -> None:
    made = directory.create("Users", userName="ann@example.org", externalId="ann", active=False)
    assert "suspended" in sign_in_by_oidc(browser()).content.decode()
    directory.patch(f"/Users/{made['id']}", {"op": "replace", "value": {"active": True}})
    assert sign_in_by_oidc(browser()).status_code == 302
    directory.patch(f"/Users/{made['id']}", {"op": "replace", "value": {"active": False}})
    assert sign_in_by_oidc(browser()).status_code == 403


@pytest.mark.parametrize("key", [{"externalId": "ann"}, {}], ids=["by the key", "by the name"])
def test_who_signed_in_before_scim_is_governed_by_scim(
    oidc: Oidc,  # noqa: F811
    directory: Directory,
    key: dict[str, str],
) -> None:
    oidc.claims["preferred_username"] = "ann@example.org"
    client = browser()
    sign_in_by_oidc(client)
    made = directory.create("Users", userName="Ann@example.org", **key)
    assert ScimUser.objects.get(pk=made["id"]).user_id == me(client)["id"]
    directory.patch(f"/Users/{made['id']}", {"op": "replace", "value": {"active": False}})
    assert client.get("/api/v1/me").status_code == 401


def test_who_was_provided_twice_is_governed_by_scim_from_the_next_sign_in_on(
    oidc: Oidc,  # noqa: F811
    directory: Directory,
) -> None:
    """An account of a sign-in before the hub kept user names."""
    oidc.claims["preferred_username"] = "ann@example.org"
    client = browser()
    sign_in_by_oidc(client)
    ProviderIdentity.objects.update(username="")
    made = directory.create("Users", userName="ann@example.org", externalId="object-7")
    directory.create("Groups", displayName="Team", members=[{"value": made["id"]}])
    row = ScimUser.objects.select_related("user").get(pk=made["id"])
    assert row.user.login != "ann-example-org"
    sign_in_by_oidc(client)
    unused, row = row.user, ScimUser.objects.select_related("user").get(pk=made["id"])
    assert (row.user_id, groups_of(row.user.login), groups_of(unused.login)) == (me(client)["id"], {"team"}, set())
    unused.refresh_from_db()
    assert not unused.is_active
    directory.patch(f"/Users/{made['id']}", {"op": "replace", "value": {"active": False}})
    assert client.get("/api/v1/me").status_code == 401


def test_a_claim_makes_members_and_takes_back_only_what_it_gave(oidc: Oidc, settings: Any) -> None:  # noqa: F811
    for slug, claim in (("data", "Data"), ("ops", "ops-id"), ("hand", "Hand"), ("none", "")):
        make_group(slug, claim)
    settings.OIDC_PROVIDERS = read_providers(oidc.url, "clawbridge", "canary-oidc-secret-81c4", "", "groups")
    oidc.claims |= {"preferred_username": "ann", "groups": ["Data", "ops-id", "unheard-of", "none", "", 7, "ops"]}
    sign_in_by_oidc(browser())
    ann = User.objects.get(login="ann")
    assert groups_of("ann") == {"data", "ops"}
    assert set(Membership.objects.filter(user=ann).values_list("role", "by_hand", "by_claim")) == {
        (Role.MEMBER, False, True)
    }
    hand = Membership.objects.get(user__login="root", group__account__login="hand").group
    groups.add_member(hand, ann, Role.AUDITOR, by=None)
    oidc.claims["groups"] = ["Hand", "Data"]
    sign_in_by_oidc(browser())
    assert groups_of("ann") == {"data", "hand"}
    assert Membership.objects.get(user=ann, group=hand).role == Role.AUDITOR
    oidc.claims["groups"] = GONE
    oidc.claims["_claim_names"] = {"groups": "src1"}
    sign_in_by_oidc(browser())
    assert groups_of("ann") == {"data", "hand"}, "the provider says that they are too many for a token"
    del oidc.claims["_claim_names"]
    sign_in_by_oidc(browser())
    assert groups_of("ann") == {"hand"}


def test_the_last_maintainer_stays_whatever_the_claim_says(oidc: Oidc, settings: Any) -> None:  # noqa: F811
    group = make_group("data", "Data")
    settings.OIDC_PROVIDERS = read_providers(oidc.url, "clawbridge", "canary-oidc-secret-81c4", "", "groups")
    oidc.claims |= {"preferred_username": "ann", "groups": "Data"}
    sign_in_by_oidc(browser())
    ann, root = User.objects.get(login="ann"), User.objects.get(login="root")
    groups.change_role(group, ann, Role.MAINTAINER, by=None)
    groups.remove_member(group, root, by=None)
    oidc.claims["groups"] = []
    assert sign_in_by_oidc(browser()).status_code == 302
    assert groups_of("ann") == {"data"}


def test_without_the_setting_no_claim_counts(oidc: Oidc) -> None:  # noqa: F811
    make_group("data", "Data")
    oidc.claims |= {"preferred_username": "ann", "groups": ["Data"]}
    sign_in_by_oidc(browser())
    assert groups_of("ann") == set()


def test_the_scope_of_groups_is_asked_for_where_the_provider_has_it(oidc: Oidc, settings: Any) -> None:  # noqa: F811
    claimed = read_providers(oidc.url, "clawbridge", "canary-oidc-secret-81c4", "", "groups")
    settings.OIDC_PROVIDERS = claimed
    oidc.metadata["scopes_supported"] = ["openid", "groups"]
    sign_in_by_oidc(browser())
    asked = next(query for path, query in oidc.seen if path == "/authorize")
    assert asked["scope"] == "openid profile email groups"


def test_claims_are_read_as_a_list() -> None:
    two = ("https://a.example https://b.example", "i j", "s t", "")
    assert [one.groups_claim for one in read_providers(*two, "- roles")] == ["", "roles"]
    assert [one.groups_claim for one in read_providers(*two, "groups")] == ["groups", ""]
    with pytest.raises(ValueError, match="OIDC_GROUPS_CLAIM"):
        read_providers(*two, "a b c")


def test_an_operator_sets_the_claim_of_a_group(db: None) -> None:
    group, other = make_group("data"), make_group("ops")
    call_command("group", "data", claim="Data")
    group.refresh_from_db()
    assert group.claim_value == "Data"
    with pytest.raises(CommandError, match="another group has the value"):
        call_command("group", "ops", claim="Data")
    call_command("group", "data", claim="")
    call_command("group", "ops", claim="Data")
    other.refresh_from_db()
    assert other.claim_value == "Data"
