"""`clawbridge trace`: what happened to one ask, and a report of a problem with it."""

import click

from clawbridge.calls import convert, read_ask, report_problem
from clawbridge.shapes import AskedOnce
from clawbridge.sign_in import Connect, json_option, with_hub
from clawbridge.terminal import bad_arguments, one_line, write_json, write_note, write_table

MAX_DETAIL_CHARS = 100


@click.command()
@click.argument("ask", metavar="ASK")
@click.option("--curl", "as_curl", is_flag=True, help="Print the command line that sends the message again.")
@click.option("--report", metavar="TEXT", help="Report a problem to the agent's owner, once.")
@json_option("Print the hub's answer as one line of JSON, with request and response.")
@with_hub
def trace(ask: str, as_curl: bool, report: str | None, as_json: bool, connect: Connect) -> None:
    """Show what happened to one ask: its steps, with their times.

    ASK: the id of a task of yours that `clawbridge tasks` lists (its last ask), or the id of an ask of yours or of
    an agent of yours.
    """
    if as_curl and as_json:
        raise bad_arguments("--curl or --json, not both: the JSON has the command line too")
    with connect() as client:
        if report is not None:
            client.call(report_problem(ask, report))
        answer = client.call(read_ask(ask))
        found = convert(client.url, answer, AskedOnce)
    if as_json:
        write_json(answer)
        return
    if as_curl:
        if not found.curl:
            raise bad_arguments("this ask cannot be sent again: no message of a caller asked it")
        click.echo(found.curl)
        return
    asked_at = found.asked_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    click.echo(
        f"{asked_at}  @{found.agent.removeprefix('@')}  {found.state}  {one_line(found.why or '')}".rstrip()
    )
    begin = min((one.began_at for one in found.steps), default=found.asked_at)
    rows = [
        [
            f"+{(one.began_at - begin).total_seconds():.3f} s",
            "…" if one.ended_at is None else f"{(one.ended_at - one.began_at).total_seconds():.3f} s",
            "  " * one.level + one_line(one.name),
            one_line(one.detail)[:MAX_DETAIL_CHARS],
        ]
        for one in found.steps
    ]
    write_table([["AFTER", "TOOK", "STEP", "DETAIL"], *rows])
    if report is not None:
        write_note("The agent's owner sees your report beside this ask.")
    write_note(f"The page of this ask: {found.url}")
