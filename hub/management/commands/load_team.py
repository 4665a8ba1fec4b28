"""`manage.py load_team`: the agents of a file become agents of a team."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from gateway.service.team_rules import DEFAULT_TEAM, BadTeamFile, load_team, read_team
from hub.management.command import HubCommand, add_login, owner_of


class Command(HubCommand):
    help = (
        "Enroll the agents of a JSON file in a user's team, with their roles: the twelve default agents without"
        " --file. They are offline until their programs connect. Again changes nothing; works while the hub runs."
    )
    refusals = (BadTeamFile,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_login(parser)
        parser.add_argument("--file", type=Path, default=DEFAULT_TEAM, help='{"agents": [{"name", "role"}]}')

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        owner = owner_of(options)
        try:
            agents = read_team(options["file"])
            count = load_team(owner.pk, agents)
        except OSError as failure:
            raise CommandError(f"{options['file']}: {failure.strerror}") from None
        self.stdout.write(f"{owner.login}: {len(agents)} agents of the file are enrolled, {count} of them are new")
