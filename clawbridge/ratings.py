"""`clawbridge rate`: a thumb for an answer."""

import click

from clawbridge.completion import complete_task
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import write_json, write_note

DONE = {"up": "Rated: thumb up.", "down": "Rated: thumb down.", "none": "The rating is taken away."}


@click.command()
@click.argument("task", shell_complete=complete_task)
@click.argument("thumb", metavar="up|down|none", type=click.Choice([*DONE]))
@click.option("--note", default="", help="Words for the agent's owner, at most 1000 characters.")
@json_option("Print `{task, rating, note}`.")
@with_hub
def rate(task: str, thumb: str, note: str, as_json: bool, connect: Connect) -> None:
    """Tell the owner of an agent whether an answer was good.

    TASK: the task's id, as `clawbridge tasks` lists it. The owner sees the thumb, the note and your login; `none`
    takes the rating away.
    """
    with connect() as client:
        client.rate(task, thumb, note)
    if as_json:
        write_json({"task": task, "rating": thumb, "note": note})
    else:
        write_note(DONE[thumb])
