"""Groups: who is in them with which role, and that a maintainer stays."""

import pytest
from django.core.management import CommandError, call_command

from accounts import groups
from accounts.authn import OutOfScope, Presented, TokenScope, check_caller, digest, find_holder
from accounts.group_invitations import NoGroupInvitation, invite_to_group, join_group
from accounts.groups import BadGroup, LastMaintainer, NoMaintainer, NotAgreed, NotAMember
from accounts.invitations import CannotInvite, invite
from accounts.limits import GROUP_MEMBERS, GROUPS_MAINTAINED
from accounts.models import Credential, Group, Membership, User
from accounts.oauth.provider_accounts import CannotLink, link, rename
from accounts.quotas import QuotaExceeded
from accounts.tokens import GroupAsks, TokenLimits, mint
from agents.core.ledger.state import LookUp, look_up
from agents.models import Agent
from hub.account_data.erasure import CannotClose, close, erase
from tests.native.rows import Person, browser, make_agent, person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def team(alice: Person) -> Group:
    return groups.create_group("Data-Team", " Data platform ", made_by=alice.user)


def join_by_link(group: Group, by: Person, who: Person, role: str = Role.MEMBER) -> None:
    link = invite_to_group(group, role, by=by.user)
    join_group(link.url.rpartition("/")[2], who.user)


def roles(group: Group) -> dict[str, str]:
    return dict(Membership.objects.filter(group=group).values_list("user__login", "role"))


def test_a_group_has_an_account_and_its_maker_maintains_it(alice: Person, team: Group) -> None:
    assert (team.slug, team.name, team.account.is_group) == ("data-team", "Data platform", True)
    assert team.pk == team.account_id
    assert roles(team) == {alice.user.login: Role.MAINTAINER}


@pytest.mark.parametrize("slug", ["", "a_b", "-a", "alice", "ALICE", "a/b", "a" * 40])
def test_a_slug_is_a_free_login(alice: Person, slug: str) -> None:
    with pytest.raises(BadGroup, match="slug: "):
        groups.create_group(slug, "A", made_by=alice.user)


@pytest.mark.parametrize("name", ["", "  ", "a" * 101, "a\0b", "a\nb"])
def test_a_name_is_printable_and_short(alice: Person, name: str) -> None:
    with pytest.raises(BadGroup, match="name: "):
        groups.create_group("team", name, made_by=alice.user)
    assert not User.objects.named("team")


def test_members_come_change_and_go(alice: Person, bob: Person, team: Group) -> None:
    groups.add_member(team, bob.user, by=alice.user)
    groups.change_role(team, bob.user, Role.AUDITOR, by=alice.user)
    assert roles(team)[bob.user.login] == Role.AUDITOR
    assert not Membership.objects.asking().filter(user=bob.user).exists()
    groups.add_member(team, bob.user, Role.MEMBER, by=alice.user)
    assert Membership.objects.asking().filter(user=bob.user).exists()
    groups.remove_member(team, bob.user, by=alice.user)
    assert bob.user.login not in roles(team)
    with pytest.raises(NotAMember):
        groups.remove_member(team, bob.user, by=alice.user)


def test_the_last_maintainer_stays(alice: Person, bob: Person, team: Group) -> None:
    groups.add_member(team, bob.user, by=alice.user)
    for change in (
        lambda: groups.remove_member(team, alice.user, by=alice.user),
        lambda: groups.change_role(team, alice.user, Role.MEMBER, by=alice.user),
        lambda: groups.add_member(team, alice.user, Role.AUDITOR, by=alice.user),
    ):
        with pytest.raises(LastMaintainer):
            change()
    with pytest.raises(CannotClose, match="last maintainer of @data-team"):
        close(alice.user.pk)
    groups.change_role(team, bob.user, Role.MAINTAINER, by=None)
    groups.remove_member(team, alice.user, by=bob.user)
    assert roles(team) == {bob.user.login: Role.MAINTAINER}


def test_only_active_persons_are_members(alice: Person, bob: Person, team: Group) -> None:
    other = groups.create_group("other", "Other", made_by=bob.user)
    program = User.objects.create(login="program", is_service=True)
    suspended = User.objects.create(login="suspended", is_active=False)
    for account in (other.account, program, suspended):
        with pytest.raises(BadGroup, match="no active account of a person"):
            groups.add_member(team, account, by=alice.user)


def test_what_a_former_maintainer_made_ends(alice: Person, bob: Person, team: Group) -> None:
    groups.add_member(team, bob.user, Role.MAINTAINER, by=None)
    token = mint(team.account, Credential.Kind.APP, "ours").credential
    Credential.objects.filter(pk=token.pk).update(minted_by=bob.user)
    browser = Credential.objects.filter(user=bob.user, kind=Credential.Kind.SESSION)
    browser.update(acts_for=team.account)
    groups.change_role(team, bob.user, Role.MEMBER, by=alice.user)
    token.refresh_from_db()
    assert not token.is_live
    assert not browser.exclude(acts_for=None).exists()


def maintain_all_but(user: User, free: int) -> None:
    """Make a user the maintainer of as many groups as one may, but for `free`."""
    held = Membership.objects.filter(user=user, role=Role.MAINTAINER).count()
    count = GROUPS_MAINTAINED.most - held - free
    accounts = User.objects.bulk_create(User(login=f"{user.login}-{n}", is_group=True) for n in range(count))
    teams = Group.objects.bulk_create(Group(account=one, name=one.login) for one in accounts)
    Membership.objects.bulk_create(Membership(group=one, user=user, role=Role.MAINTAINER) for one in teams)


def test_the_limits_of_groups_and_of_members(alice: Person, bob: Person, team: Group) -> None:
    users = User.objects.bulk_create(User(login=f"many{number}") for number in range(GROUP_MEMBERS.most - 1))
    Membership.objects.bulk_create(Membership(group=team, user=one) for one in users)
    with pytest.raises(QuotaExceeded, match=f"the group has {GROUP_MEMBERS.most} members"):
        groups.add_member(team, bob.user, by=alice.user)
    maintain_all_but(alice.user, 1)
    groups.create_group("last", "Last", made_by=alice.user)
    with pytest.raises(QuotaExceeded, match=f"maintainer of {GROUPS_MAINTAINED.most} groups"):
        groups.create_group("second", "Second", made_by=alice.user)


def test_only_who_joined_by_a_link_is_made_a_maintainer_by_another(
    alice: Person, bob: Person, team: Group
) -> None:
    with pytest.raises(NotAgreed, match="@bob has not agreed"):
        groups.add_member(team, bob.user, Role.MAINTAINER, by=alice.user)
    assert "bob" not in roles(team)
    groups.add_member(team, bob.user, by=alice.user)
    for change in (groups.add_member, groups.change_role):
        with pytest.raises(NotAgreed):
            change(team, bob.user, Role.MAINTAINER, by=alice.user)
    with pytest.raises(LastMaintainer):
        groups.remove_member(team, alice.user, by=alice.user)
    join_by_link(team, alice, bob)
    assert roles(team)["bob"] == Role.MEMBER
    groups.change_role(team, bob.user, Role.MAINTAINER, by=alice.user)
    join_by_link(team, alice, carol := person("carol"), Role.MAINTAINER)
    assert roles(team)[carol.user.login] == Role.MAINTAINER


def test_each_new_maintainer_is_within_the_limit_of_groups(alice: Person, bob: Person, team: Group) -> None:
    maintain_all_but(bob.user, 0)
    join_by_link(team, alice, bob)
    for by in (alice.user, None):
        with pytest.raises(QuotaExceeded, match=f"maintainer of {GROUPS_MAINTAINED.most} groups"):
            groups.change_role(team, bob.user, Role.MAINTAINER, by=by)
    carol = person("carol")
    maintain_all_but(carol.user, 0)
    with pytest.raises(QuotaExceeded):
        groups.add_member(team, carol.user, Role.MAINTAINER, by=None)
    with pytest.raises(QuotaExceeded):
        join_by_link(team, alice, carol, Role.MAINTAINER)
    assert roles(team) == {"alice": Role.MAINTAINER, "bob": Role.MEMBER}


def test_a_maintainer_who_was_removed_meanwhile_makes_nothing(alice: Person, bob: Person, team: Group) -> None:
    """The membership is read again under the lock, whatever a request read before."""
    groups.add_member(team, bob.user, Role.MAINTAINER, by=None)
    link = invite_to_group(team, Role.MEMBER, by=bob.user)
    groups.remove_member(team, bob.user, by=alice.user)
    carol = person("carol").user
    for make in (
        lambda: groups.mint_for_group(team, bob.user, lambda account: mint(account, Credential.Kind.APP, "x")),
        lambda: groups.add_member(team, carol, by=bob.user),
        lambda: invite_to_group(team, Role.MAINTAINER, by=bob.user),
        lambda: groups.join(team, carol, Role.MEMBER, invited_by=bob.user),
    ):
        with pytest.raises(NoMaintainer):
            make()
    with pytest.raises(NoGroupInvitation):
        join_group(link.url.rpartition("/")[2], carol)
    assert not Credential.objects.filter(user=team.account).exists()
    assert roles(team) == {"alice": Role.MAINTAINER}


def test_a_token_of_a_group_does_not_ask(alice: Person, team: Group) -> None:
    with pytest.raises(GroupAsks, match="cannot have ask"):
        mint(team.account, Credential.Kind.APP, "x", limits=TokenLimits(("ask", "read")))
    earlier = mint(team.account, Credential.Kind.APP, "earlier")
    agent = make_agent(team.account, "shared")
    for scopes, only_agent in (("", ""), ("ask read", ""), ("ask", ""), ("", agent.handle.lower())):
        Credential.objects.filter(pk=earlier.credential.pk).update(scopes=scopes, only_agent=only_agent)
        token = Presented(digest(earlier.token), by_cookie=False)
        by_pages = find_holder(token, "app")
        of_asks = look_up([LookUp(token.digest, agent.handle)])[0].identity
        assert by_pages is not None
        assert by_pages.identity == of_asks, scopes
        with pytest.raises(OutOfScope):
            check_caller(token, of_asks, TokenScope.ASK, agent=agent.handle)
        assert by_pages.identity.may(TokenScope.READ, agent=agent.handle) is (scopes != "ask")
    persons = look_up([LookUp(digest(alice.app), None)])[0].identity
    assert persons is not None
    assert persons.may(TokenScope.ASK)


def test_a_closed_account_leaves_its_groups_and_a_closed_group_has_no_members(
    alice: Person, bob: Person, team: Group
) -> None:
    carol = person("carol")
    groups.add_member(team, bob.user, by=alice.user)
    groups.add_member(team, carol.user, by=alice.user)
    close(carol.user.pk)
    assert set(roles(team)) == {alice.user.login, bob.user.login}
    close(team.pk)
    assert not Membership.objects.filter(group=team).exists()
    assert groups.create_group("data-team", "Again", made_by=bob.user).slug == "data-team"


def test_the_operator_lists_and_changes_groups(
    alice: Person, bob: Person, team: Group, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("group")
    assert capsys.readouterr().out == "@data-team\tData platform\n"
    call_command("group", "@data-team", add="bob", role="maintainer")
    assert capsys.readouterr().out == "@alice\tmaintainer\n@bob\tmaintainer\n"
    call_command("group", "data-team", remove="alice")
    assert roles(team) == {"bob": Role.MAINTAINER}
    for arguments, options, text in (
        (["unknown"], {}, "there is no group @unknown"),
        (["data-team"], {"remove": "bob"}, "no maintainer"),
        (["data-team"], {"add": "unknown"}, "no user has the login unknown"),
    ):
        with pytest.raises(CommandError, match=text):
            call_command("group", *arguments, **options)


def test_no_link_and_no_sign_in_make_the_account_of_a_group_a_persons(team: Group) -> None:
    with pytest.raises(CannotInvite, match="is a group"):
        invite(team.slug, is_admin=False, made_by=None)
    with pytest.raises(CannotLink):
        link(team.slug, 7)
    with pytest.raises(CannotLink):
        rename(team.slug, "other")


def test_an_erased_group_leaves_an_account_without_a_name(alice: Person, team: Group) -> None:
    make_agent(team.account, "shared")
    account = close(team.pk)
    assert erase(account)
    assert not Group.objects.filter(pk=team.pk).exists()
    assert not Agent.objects.filter(owner=team.pk).exists()
    assert User.objects.get(pk=team.pk).login.startswith("erased-")


GROUPS, MEMBERSHIPS = "/admin/accounts/group/", "/admin/accounts/membership/"


def test_the_staff_creates_groups_and_changes_members_in_the_admin(bob: Person, staff: Person) -> None:
    client = browser(staff.session)
    form = {"slug": "Ops", "name": "Operations", "maintainer": "@bob"}
    assert client.post(f"{GROUPS}add/", {**form, "maintainer": "unknown"}).status_code == 200
    assert client.post(f"{GROUPS}add/", form).status_code == 302
    ops = Group.objects.get(account__login="ops")
    assert roles(ops) == {"bob": Role.MAINTAINER}
    assert "is taken" in client.post(f"{GROUPS}add/", form).content.decode()
    assert client.post(f"{GROUPS}{ops.pk}/change/", {"name": "Ops"}).status_code == 302
    added = client.post(f"{MEMBERSHIPS}add/", {"slug": "ops", "login": staff.user.login, "role": "auditor"})
    assert added.status_code == 302
    of_bob = Membership.objects.get(group=ops, user=bob.user).pk
    refused = client.post(f"{MEMBERSHIPS}{of_bob}/change/", {"role": "member"})
    assert "no maintainer" in refused.content.decode()
    protected = client.post(f"{MEMBERSHIPS}{of_bob}/delete/", {"post": "yes"})
    assert "@ops would have no maintainer" in protected.content.decode()
    of_staff = Membership.objects.get(group=ops, user=staff.user).pk
    assert client.post(f"{MEMBERSHIPS}{of_staff}/change/", {"role": "maintainer"}).status_code == 302
    assert client.post(f"{MEMBERSHIPS}{of_bob}/delete/", {"post": "yes"}).status_code == 302
    ops.refresh_from_db()
    assert (ops.name, roles(ops)) == ("Ops", {staff.user.login: Role.MAINTAINER})


def test_a_member_only_looks_in_the_admin(alice: Person, bob: Person, team: Group) -> None:
    groups.add_member(team, bob.user, by=None)
    row, client = Membership.objects.get(group=team, user=bob.user).pk, browser(bob.session)
    assert client.get(f"{MEMBERSHIPS}{row}/change/").status_code == 200
    paths = [f"{MEMBERSHIPS}{row}/change/", f"{MEMBERSHIPS}{row}/delete/", f"{MEMBERSHIPS}add/", f"{GROUPS}add/"]
    for path in paths:
        assert client.post(path, {"role": "maintainer", "post": "yes"}).status_code == 403, path
    assert roles(team)["bob"] == Role.MEMBER
