"""The options of the command line: their help, the token, and the file that keeps the session."""

import argparse
import fcntl
import hashlib
import logging
import os
from pathlib import Path
from uuid import UUID

from clawbridge.checks import HUB_VARIABLE, TOKEN_VARIABLE, read_token
from clawbridge.connect.command import AGNT_SECRET_VARIABLE
from clawbridge.connect.presets import PRESETS

TOOL_TIMEOUT_S = 50.0  # the hub waits 60 s for a reply, if its operator and the agent's owner changed nothing

DESCRIPTION = "Make a program an agent of a Clawbridge hub: it stays connected and answers questions."
EPILOG = """\
examples:
  export CLAWBRIDGE_HUB=https://hub.example CLAWBRIDGE_TOKEN=ck_live_...
  python3 connect.pyz --echo
  python3 connect.pyz --name word-counter --exec -- wc -w
  python3 connect.pyz --name helper --protocol lines --exec -- ./helper.py
  python3 connect.pyz --name reviewer --preset claude --directory ~/project
  python3 connect.pyz --name search --mcp "npx some-mcp-server" --tool search
  python3 connect.pyz --name alpha --gateway --votes --exec -- ./judge.sh
  python3 connect.pyz --name la-brisa --agnt --exec -- python3 book.py
Each question starts the command once: the question is its standard input, what it prints is the reply,
and CLAWBRIDGE_CHAT_ID, _ASKER, _TASK_ID and _CONTEXT_ID say more about it. An exit status other than 0
fails the task, with the end of standard error. More is in clawbridge/connect/README.md.

exit codes: 0 stopped, 2 bad arguments or token refused, 3 another process took over the session"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `run` reads."""
    parser.add_argument("--hub", metavar="URL", help=f"the hub's origin (else ${HUB_VARIABLE})")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        help=f"a token ck_live_... (else ${TOKEN_VARIABLE}; others can read a command line)",
    )
    parser.add_argument("--token-file", type=Path, metavar="PATH", help="a file that holds the token alone")
    parser.add_argument("--name", metavar="ROUTING", help="routing name to ask for: a-z, 0-9 and '-'")
    parser.add_argument(
        "--session-file",
        type=Path,
        metavar="PATH",
        help="where the session is kept over restarts (else one for hub and name below ~/.local/state/clawbridge)",
    )
    parser.add_argument(
        "--new-session",
        action="store_true",
        help="begin a new session, and keep none; an agent stays on its old session until its owner moves it",
    )
    parser.add_argument(
        "--gateway",
        action="store_true",
        help="take the seat --name of a gateway that speaks a2a-v1: the hub's, or the one at --hub ws://HOST:PORT",
    )
    parser.add_argument(
        "--votes", action="store_true", help="for --gateway: ask the program to vote on proposals, too"
    )
    parser.add_argument(
        "--agnt",
        action="store_true",
        help="for --exec: be a venue, and answer AGNT envelopes (clawbridge/connect/README.md)",
    )
    parser.add_argument(
        "--agnt-secret-file",
        type=Path,
        metavar="PATH",
        help=f"for --agnt: the secret that envelopes are signed with (else ${AGNT_SECRET_VARIABLE}; without it"
        " signatures are not checked)",
    )
    parser.add_argument(
        "--json", action="store_true", help="log one line of JSON for each event, on standard error"
    )
    parser.add_argument("--echo", action="store_true", help="answer each question with its own text")
    parser.add_argument("--exec", action="store_true", help="answer with what the command prints")
    parser.add_argument(
        "--protocol",
        choices=("text", "lines"),
        default="text",
        help="what --exec's command speaks: text (default), or lines of JSON (clawbridge/connect/README.md)",
    )
    parser.add_argument(
        "--preset", choices=sorted(PRESETS), help="answer with this coding agent, which must be installed"
    )
    parser.add_argument(
        "--directory", type=Path, metavar="PATH", help="for --preset: where the program works and reads files"
    )
    parser.add_argument(
        "--access",
        choices=("read", "write", "ask"),
        default="read",
        help="for --preset: whether the program may only read (default), change files too, or asks the"
        " operators of the session for each permission",
    )
    parser.add_argument(
        "--mcp", metavar="COMMAND|URL", help="answer with a tool of this MCP server (needs the MCP SDK)"
    )
    parser.add_argument("--tool", metavar="NAME", help="for --mcp: the tool; without it, its tools are listed")
    parser.add_argument(
        "--tool-timeout",
        type=float,
        metavar="SECONDS",
        help=f"for --mcp: how long a question may take (default {TOOL_TIMEOUT_S:g})",
    )
    parser.add_argument(
        "--skill", action="store_true", help="for --mcp: print the tool as a skill for the agent's card, and end"
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        help="for --exec: the rest of the line; for --preset: more arguments of the program, after --",
    )


class SessionFile:
    """A file with the id of a session. One process at a time holds the file; another process starts a new session.

    `hold` before `load` and `save`; the file is let go when the process ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: int | None = None

    def hold(self) -> bool:
        """Make the file this process's own; False when another process has it, or it cannot be."""
        try:
            if self.path.parts[:1] == ("~",):
                raise ValueError("this user has no home directory")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            held = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (OSError, ValueError) as problem:
            logger.warning("session file %s is not usable: %s", self.path, problem)
            return False
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            logger.warning("session file %s is in use by another process: this one gets a new session", self.path)
            return False
        self._held = held
        return True

    def load(self) -> str | None:
        """Give the session stored in the file, or None if there is none to be had."""
        try:
            text = self.path.read_text(encoding="ascii").strip()
            return str(UUID(text)) if text else None
        except (OSError, ValueError) as problem:
            logger.warning("session file %s is not usable: %s", self.path, problem)
            return None

    def save(self, session_id: str) -> None:
        """Store the session; a file that cannot be written costs a warning, not the connection."""
        try:
            self.path.write_text(f"{session_id}\n", encoding="ascii")
        except (OSError, ValueError) as problem:
            logger.warning("session file %s is not usable: %s", self.path, problem)


def default_path(hub: str, name: str | None) -> Path:
    """The file for the session of an agent of this name on this hub; without a name, of the working directory."""
    home = os.environ.get(STATE_VARIABLE, "")
    state = Path(home) if Path(home).is_absolute() else Path(os.path.expanduser("~"), ".local", "state")
    place = hashlib.sha256(f"{hub.rstrip('/')}\n{name or os.getcwd()}".encode(errors="replace")).hexdigest()[:12]
    return state / "clawbridge" / f"{name or 'agent'}-{place}.session"


def hold_session_file(options: argparse.Namespace, hub: str, name: str | None) -> SessionFile | None:
    """The file that keeps the session, this process's alone; None without one.

    Raises:
        ValueError: the options contradict each other.
    """
    if options.new_session and options.session_file:
        raise ValueError("want --session-file or --new-session, not both")
    if options.gateway and (options.new_session or options.session_file):
        raise ValueError("--gateway: a seat goes by its --name, and keeps no session file")
    if options.votes and not options.gateway:
        raise ValueError("--votes: want --gateway")
    if options.new_session or options.gateway:
        return None
    file = SessionFile(options.session_file or default_path(hub, name))
    return file if file.hold() else None


def choose_token(options: argparse.Namespace) -> str:
    """The token of an option, a file or the environment.

    Raises:
        ValueError: no token or more than one is given, or the file cannot be read.
    """
    if options.token_file is None:
        return required(options.token, "--token", TOKEN_VARIABLE)
    if options.token:
        raise ValueError("want --token or --token-file, not both")
    return read_token(options.token_file)


def required(flag: str | None, name: str, variable: str) -> str:
    """Give the flag's value, else the environment's."""
    if value := flag or os.environ.get(variable):
        return value
    raise ValueError(f"{name} is missing (or set {variable})")


logger = logging.getLogger(__name__)

STATE_VARIABLE = "XDG_STATE_HOME"
