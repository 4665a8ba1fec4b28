"""`manage.py gateway_session`: create, list, show, commit, archive, delete, export, import sessions of a team."""

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import CommandError

from gateway.service import session_files, session_rows
from gateway.service.session_rows import SessionUser
from gateway.surface.handlers.history import read_agent, read_id
from gateway.wire.errors import FrameRefused
from gateway.wire.frames import Json
from hub.management.command import HubCommand, add_login, owner_of

Options = dict[str, Any]


class Command(HubCommand):
    help = "Sessions of the agents of a user at the gateway. Prints JSON. Works while the hub runs."
    refusals = (OSError,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_login(parser)
        actions = parser.add_subparsers(dest="action", required=True)
        creating = actions.add_parser("create", help="make a new, empty session")
        creating.add_argument("agent")
        creating.add_argument("id", nargs="?", default="", help="the session's id; the hub makes one if absent")
        listing = actions.add_parser("list", help="a line for each session")
        listing.add_argument("agent", nargs="?", default="")
        listing.add_argument("--archived", action="store_true", help="archived ones, too")
        for name, text in {
            "get": "a line for each entry",
            "commit": "check that it is whole, and mark it as committed",
            "delete": "delete it with its entries",
            "export": "write it to standard output as session.jsonl",
        }.items():
            one = actions.add_parser(name, help=text)
            one.add_argument("agent")
            one.add_argument("id")
        archiving = actions.add_parser("archive", help="archive sessions whose last entry is older")
        archiving.add_argument("agent", nargs="?", default="")
        archiving.add_argument("--older-than", required=True, metavar="7d", help="a number of s, m, h, d or w")
        importing = actions.add_parser("import", help="import the sessions of a file: all or none")
        importing.add_argument("agent")
        importing.add_argument("file", type=Path, help="session.jsonl")
        importing.add_argument("--index", type=Path, help="the sessions.json of the file")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action, or fail with the reason."""
        user = owner_of(options)
        try:
            self._actions[options["action"]](self, SessionUser(user.pk, user.login), options)
        except FrameRefused as refused:
            raise CommandError(f"{refused.code.value} {refused.code.name}: {refused}") from None

    def _create(self, user: SessionUser, options: Options) -> None:
        session_id = read_id({"sessionId": options["id"]}) if options["id"] else ""
        self._print(session_rows.show_session(session_rows.create_session(user, read_agent(options), session_id)))

    def _list(self, user: SessionUser, options: Options) -> None:
        self._print_all(
            "sessions", session_rows.list_sessions, user, options["agent"], archived=options["archived"]
        )

    def _get(self, user: SessionUser, options: Options) -> None:
        self._print_all("entries", session_rows.get_entries, user, options["agent"], options["id"])

    def _commit(self, user: SessionUser, options: Options) -> None:
        self._print(session_rows.show_session(session_rows.commit_session(user, options["agent"], options["id"])))

    def _archive(self, user: SessionUser, options: Options) -> None:
        age = session_rows.read_age(options["older_than"])
        self._print(session_rows.archive_older(user, options["agent"], age))

    def _delete(self, user: SessionUser, options: Options) -> None:
        session_rows.delete_session(user, options["agent"], options["id"])
        self._print({"deleted": options["id"]})

    def _export(self, user: SessionUser, options: Options) -> None:
        data = session_files.export_session(user, options["agent"], options["id"])
        self.stdout.write(data.decode(), ending="")

    def _import(self, user: SessionUser, options: Options) -> None:
        index = options["index"].read_bytes() if options["index"] else b""
        for log in session_files.import_sessions(user, options["agent"], options["file"].read_bytes(), index):
            self._print(session_rows.show_session(log))

    def _print_all(self, name: str, load: Callable[..., Json], *args: Any, **options: Any) -> None:
        """Print each of a list that is loaded page by page."""
        after = 0
        while True:
            found = load(*args, limit=session_rows.MAX_LISTED, after=after, **options)
            for one in found[name]:
                self._print(one)
            if not (after := found.get("next", 0)):
                return

    def _print(self, shown: Json) -> None:
        self.stdout.write(msgspec.json.encode(shown).decode())

    _actions: dict[str, Callable[..., None]] = {
        "create": _create,
        "list": _list,
        "get": _get,
        "commit": _commit,
        "archive": _archive,
        "delete": _delete,
        "export": _export,
        "import": _import,
    }
