"""`clawbridge favourites`: the agents that the user marked."""

import click
import msgspec

from clawbridge.calls import HubRequest, agent_path, convert
from clawbridge.completion import complete_handle
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import bad_arguments, write_json, write_note, write_table

FAVOURITES = "/api/v1/favourites"


class Favourite(msgspec.Struct, frozen=True):
    """A marked agent."""

    handle: str
    name: str
    tagline: str


class FavouritePage(msgspec.Struct, frozen=True):
    """`GET /api/v1/favourites`, by handle."""

    items: list[Favourite]
    total: int


@click.command()
@click.argument("handle", metavar="[@OWNER/SLUG]", required=False, shell_complete=complete_handle)
@click.option("--add", "change", flag_value="PUT", help="Mark the agent.")
@click.option("--remove", "change", flag_value="DELETE", help="Remove its mark.")
@json_option("Print the hub's answer as one line of JSON.")
@with_hub
def favourites(handle: str | None, change: str | None, as_json: bool, connect: Connect) -> None:
    """List the agents that you marked, or mark one."""
    if bool(handle) != bool(change):
        raise bad_arguments("want an agent with --add or --remove, or neither to list your favourites")
    if handle:
        agent_path(handle)
    with connect() as client:
        if handle and change:
            client.call(HubRequest(change, f"{FAVOURITES}/{handle.removeprefix('@')}"))
        answer = client.call(HubRequest("GET", FAVOURITES))
        page = convert(client.url, answer, FavouritePage)
    if as_json:
        write_json(answer)
    elif page.items:
        rows = [[f"@{one.handle}", one.tagline or one.name] for one in page.items]
        write_table([["AGENT", "ABOUT"], *rows])
    else:
        write_note("No favourite. Mark an agent: clawbridge favourites @OWNER/SLUG --add")
