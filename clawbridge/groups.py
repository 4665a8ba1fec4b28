"""`clawbridge groups`: the groups of the signed-in user, and their members."""

import re
from datetime import datetime

import click
import msgspec

from clawbridge.calls import HubRequest, convert
from clawbridge.lists import local_time
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import bad_arguments, write_json, write_note, write_table

GROUPS = "/api/v1/groups"
ROLES = ("member", "maintainer", "auditor")
LOGIN = re.compile(r"[A-Za-z0-9-]{1,64}")
MOST = 1000
AS_JSON = "Print the hub's answer as one line of JSON."


class GroupEntry(msgspec.Struct, frozen=True):
    """The columns of a group in a list."""

    slug: str
    name: str
    role: str


class GroupPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/groups`."""

    items: list[GroupEntry]
    total: int


class MemberEntry(msgspec.Struct, frozen=True, rename="camel"):
    """The columns of a member in a list."""

    login: str
    role: str
    created_at: datetime


class MemberPage(msgspec.Struct, frozen=True):
    """`GET /api/v1/groups/{slug}/members`."""

    items: list[MemberEntry]
    total: int


def group_path(slug: str, *login: str) -> str:
    """The address of a group, or of a member of it.

    Raises:
        CommandFailure: a name cannot be one.
    """
    names = [name.removeprefix("@") for name in (slug, *login)]
    if not all(map(LOGIN.fullmatch, names)):
        raise bad_arguments("a group and a user have names of letters, digits and hyphens, such as data-platform")
    return "/members/".join([f"{GROUPS}/{names[0]}", *names[1:]])


class ListsByDefault(click.Group):
    """A group of commands that lists without a subcommand; the options are those of `list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before options that no subcommand precedes; completion still offers the subcommands."""
        is_bare = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if is_bare and not ctx.resilient_parsing else args)


@click.group(cls=ListsByDefault)
def groups() -> None:
    """List your groups, and manage those that you maintain."""


@groups.command("list")
@json_option(AS_JSON)
@with_hub
def list_own(as_json: bool, connect: Connect) -> None:
    """List your groups with your role in each."""
    with connect() as client:
        answer = client.call(HubRequest("GET", GROUPS, {"limit": MOST}))
        page = convert(client.url, answer, GroupPage)
    if as_json:
        write_json(answer)
    elif page.items:
        write_table([["GROUP", "ROLE", "NAME"], *([f"@{one.slug}", one.role, one.name] for one in page.items)])
    else:
        write_note("You are in no group. `clawbridge groups create SLUG NAME` makes one.")


@groups.command()
@click.argument("slug")
@click.argument("name")
@json_option(AS_JSON)
@with_hub
def create(slug: str, name: str, as_json: bool, connect: Connect) -> None:
    """Create a group. SLUG: its name in addresses, @SLUG/agent; NAME: its name for people."""
    group_path(slug)
    with connect() as client:
        answer = client.call(HubRequest("POST", GROUPS, body={"slug": slug.removeprefix("@"), "name": name}))
        made = convert(client.url, answer, GroupEntry)
    if as_json:
        write_json(answer)
    else:
        write_note(f"@{made.slug} is made; you maintain it. Add users: clawbridge groups add {made.slug} LOGIN")


@groups.command()
@click.argument("slug")
@json_option(AS_JSON)
@with_hub
def members(slug: str, as_json: bool, connect: Connect) -> None:
    """List the members of a group with their roles."""
    with connect() as client:
        answer = client.call(HubRequest("GET", f"{group_path(slug)}/members", {"limit": MOST}))
        page = convert(client.url, answer, MemberPage)
    if as_json:
        write_json(answer)
        return
    rows = [[f"@{one.login}", one.role, local_time(one.created_at)] for one in page.items]
    write_table([["MEMBER", "ROLE", "SINCE"], *rows])


@groups.command()
@click.argument("slug")
@click.argument("login")
@click.option(
    "--role", type=click.Choice(ROLES), default="member", show_default=True, help="The role of the user."
)
@json_option(AS_JSON)
@with_hub
def add(slug: str, login: str, role: str, as_json: bool, connect: Connect) -> None:
    """Add a user to a group, or change the role of a member."""
    with connect() as client:
        answer = client.call(HubRequest("PUT", group_path(slug, login), body={"role": role}))
        added = convert(client.url, answer, MemberEntry)
    if as_json:
        write_json(answer)
    else:
        write_note(f"@{added.login} is {added.role} of @{slug.removeprefix('@')}")


@groups.command()
@click.argument("slug")
@click.argument("login")
@json_option("Print nothing but null, as one line of JSON.")
@with_hub
def remove(slug: str, login: str, as_json: bool, connect: Connect) -> None:
    """Remove a user from a group, or leave it. What the group allowed the user ends within 2 seconds."""
    with connect() as client:
        answer = client.call(HubRequest("DELETE", group_path(slug, login)))
    if as_json:
        write_json(answer)
    else:
        write_note(f"@{login.removeprefix('@')} is not in @{slug.removeprefix('@')} any more")
