"""The settings that only the hub reads, and those that the hub gives several apps (kit/env.py, docs/adr/0106)."""

from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from hub.data_dir import BASE_DIR, read_data_dir
from kit import env

# Where the hub serves.
HOST = env.text("HOST", "127.0.0.1")
"""the address to listen on. `0.0.0.0` and `::`, all addresses of the machine, need a `PUBLIC_URL`"""
PORT = env.integer("PORT", 8787, least=1, most=65535)
"""the port to listen on"""
LOCAL_URL = f"http://[{HOST}]:{PORT}" if ":" in HOST else f"http://{HOST}:{PORT}"
PUBLIC_URL = env.public_url("PUBLIC_URL", LOCAL_URL)
"""Default: `http://HOST:PORT`
the hub's address for clients: scheme, host, port, and a path if the hub is below one (`https://example.org/hub`;
the proxy may pass that path on or remove it). Cards and links are built from it alone, and the cookie is accepted
only from pages of its origin. With `https`, cookies are marked secure"""
PATH_PREFIX = urlsplit(PUBLIC_URL).path
PUBLIC_ORIGIN = PUBLIC_URL.removesuffix(PATH_PREFIX)
IS_HTTPS = PUBLIC_URL.startswith("https://")
ALLOWED_HOSTS = [urlsplit(PUBLIC_URL).hostname or HOST, *env.LOOPBACK, "[::1]", *env.text("ALLOWED_HOSTS").split()]
"""further host names that are accepted, separated by spaces. The host of `PUBLIC_URL` and loopback always are"""
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")  # uvicorn reads the headers of these proxies (hub/server.py)
"""your reverse proxies, such as `127.0.0.1 10.0.0.0/24`. From them alone `X-Forwarded-For` (read from its end, up
to the first address that is none of them) and `X-Forwarded-Proto` are used; from other clients they are ignored.
Without this setting a caller's address is that of the connection"""
BEHIND_PROXY = env.flag("BEHIND_PROXY")
"""removed: `1` stops the start. Name your proxies in `TRUSTED_PROXIES`"""
if BEHIND_PROXY:
    raise ImproperlyConfigured(
        "BEHIND_PROXY trusted the headers of every client and was removed: name your proxies in TRUSTED_PROXIES,"
        " such as TRUSTED_PROXIES=127.0.0.1"
    )

# Where the hub keeps its state.
DATA_DIR = read_data_dir(env.text("DATA_DIR"), BASE_DIR)
"""Default: `data` beside `manage.py`; of an installed hub `clawbridge` below `~/.local/share` (`XDG_DATA_HOME`)
the folder for all state: SQLite's database, the secret key, the address of the running hub, and 8 MiB kept free
[for a full disk](faults.md#a-full-disk). Created if absent, mode 700. An installed hub is one that
[`clawbridge-hub serve`](../howto/ask-from-a-shell.md#run-a-hub) runs"""
DATABASE_URL = env.text("DATABASE_URL")
"""Default: none: SQLite in `DATA_DIR`
`postgres://user:password@host:port/name`, parts percent-encoded; a query such as `?sslmode=require` goes to libpq.
Goes together with `REDIS_URL`"""
REDIS_URL = env.text("REDIS_URL")
"""Default: none: everything in process
`redis://host:port/number`: post, tasks, rate limit, jobs. Goes together with `DATABASE_URL`"""
if bool(DATABASE_URL) != bool(REDIS_URL):
    raise ImproperlyConfigured("DATABASE_URL and REDIS_URL go together: set both, or neither for the embedded hub")
IS_EMBEDDED = not DATABASE_URL
RATE_STORAGE = REDIS_URL or "memory://"
INVOICES_DIR = DATA_DIR / "invoices"
SECRET_KEY = env.text("SECRET_KEY")
"""Default: made once, kept in `DATA_DIR/secret_key`
signs cookies and forms, and makes the context ids that agents see: with another key an open conversation gets
another id. Processes of one hub on several machines must share it"""
SECRET_KEY_FALLBACKS = env.text("SECRET_KEY_FALLBACKS").split()
"""earlier values of `SECRET_KEY`, separated by spaces: what they signed and encrypted stays valid"""
TASK_STORE = env.choice("TASK_STORE", "journal", ("memory", "redis", "journal"))
"""where A2A tasks are kept: `journal` (the database: callers find their [threads](../howto/operate.md#threads) for
`TASKS_KEPT_DAYS`), `memory` (one process, lost with it, for half an hour) or `redis` (needs `REDIS_URL`, for half
an hour). [Comparison](../howto/operate.md#where-tasks-are-kept)"""
if TASK_STORE == "redis" and not REDIS_URL:
    raise ImproperlyConfigured("TASK_STORE=redis needs REDIS_URL: set it, or TASK_STORE=journal")
if TASK_STORE == "memory" and not IS_EMBEDDED:
    raise ImproperlyConfigured(
        "TASK_STORE=memory keeps tasks in one process, where the others do not find them: set redis or journal"
    )
TASKS_MEMORY_MB = env.integer("TASKS_MEMORY_MB", 64, least=16)
"""mebibytes that tasks kept in `memory` may take; beyond it the oldest ended ones are dropped, first those of the
callers who asked least recently. One caller may take 16. [Other uses of memory](memory.md)"""

# Services of the hub, and their bounds.
DEMO = env.flag("DEMO")
"""Default: `0` (`make run`: `1`)
`1`: run the agent `demo/echo` and print a token and a curl command"""
GATEWAY = env.flag("GATEWAY")
"""Default: `0` (`make run`: `1`)
`1`: serve the WebSocket protocol `a2a-v1` at `/gateway`, `/ws`, `/a2a` and `/`. `0`: these answer an upgrade with
404 and a text that names this setting. [Reference](gateway.md), [how to run a team](../howto/run-a-team.md)"""
GATEWAY_PROTOTYPE = env.flag("GATEWAY_PROTOTYPE")
"""`1`: clients that connect to `/a2a` without a subprotocol speak the [dialect of the protocol's
prototype](gateway.md#the-prototypes-dialect); for teams whose programs are that old. Needs `GATEWAY=1`"""
AGNT = env.flag("AGNT", default=True)
"""`0`: serve no AGNT envelopes, neither `/a2a/v1` nor `/network/…`, and no pages of networks"""
DRAIN_S = env.seconds("DRAIN_S", 25)
"""seconds that open questions get to end when the hub stops"""
CALLER_RATE_PER_MINUTE = env.integer("CALLER_RATE_PER_MINUTE", 30)
"""asks of one caller in any minute, to all agents together; `0`: no limit"""
STREAMS_PER_CALLER = env.integer("STREAMS_PER_CALLER", 100, least=1)
"""streams one caller may hold open on one process; more get HTTP 429. The limit also holds
for operators' sockets (`/cli`) and for clients of the [gateway](gateway.md) without a seat, each counted alone"""
ACCOUNT_SHARE_PERCENT = env.integer("ACCOUNT_SHARE_PERCENT", 25, most=100)
"""percent of a processor that the pages, REST calls, exports and downloads of one account may use
after their first 0.1 s; its further requests wait. `0`: no limit"""
SOCKET_BYTES_PER_SECOND = env.integer("SOCKET_BYTES_PER_SECOND", 500_000)
"""bytes a second that are read from all WebSockets of one account; faster frames wait. A frame
counts 200 bytes more than it has, a frame to many agents 500 for each of them, a message or request of the gateway
that reads rows 10,000 more, and an operator's message or subscription 20,000. Agents connect at the same pace,
20,000 each, those of the gateway 40,000, and 80,000 more with a new session. `0`: no limit"""
STREAM_MAX_AGE_S = env.seconds("STREAM_MAX_AGE_S", 4500)
"""seconds after which an A2A stream ends, in any state of its task; it can be resumed. More than the longest
`waitS` of an agent, an hour"""
DOWNLOADS_PER_OWNER = env.integer("DOWNLOADS_PER_OWNER", 2)
"""exports, files over 192 KiB and spreadsheets one account may have under way in each process; more get HTTP 429
with `Retry-After`"""
DOWNLOADS_PER_PROCESS = env.integer("DOWNLOADS_PER_PROCESS", 8)
"""downloads of all accounts together in each process; more get HTTP 503 with `Retry-After`"""

# The days for which the jobs of `hub/settings.py` keep rows.
TURNS_KEPT_DAYS = env.integer("TURNS_KEPT_DAYS", 400, least=1)
"""days after which ended turns are deleted"""
ACTS_KEPT_DAYS = env.integer("ACTS_KEPT_DAYS", 0, least=0, most=36_500)
"""days after which entries of the admin's log are deleted. 0: never"""
EVENTS_KEPT_DAYS = env.integer("EVENTS_KEPT_DAYS", 90, least=1, most=36_500)
"""days after which events of transcripts are deleted, questions and replies among them, rows of token usage,
sessions of teams after their last entry, and proposals of teams that were decided"""
DELIVERIES_KEPT_DAYS = env.integer("DELIVERIES_KEPT_DAYS", 30, least=1)
"""days after which webhook deliveries are deleted, also those that were due for a day without being sent"""
LETTERS_KEPT_DAYS = env.integer("LETTERS_KEPT_DAYS", 30, least=1, most=36_500)
"""days after which [stored messages](gateway.md#inboxes) of the gateway are deleted, counted from their arrival.
Messages that still wait are kept"""
TASKS_KEPT_DAYS = env.integer("TASKS_KEPT_DAYS", 90, least=1, most=36_500)
"""days for which threads are kept: each task, a question with its answer, is deleted so long after its last change
of state, and a thread with its last task"""

# Mails with alerts to owners.
EMAIL = env.choice("EMAIL", "off", ("off", "console", "smtp"))
"""how [alerts](../howto/alerts.md) are mailed. `console`: written to the standard output, to try the alerts"""
SENDS_MAIL = EMAIL != "off"
EMAIL_HOST = env.text("EMAIL_HOST", "localhost")
"""the mail server"""
EMAIL_PORT = env.integer("EMAIL_PORT", 25, least=1, most=65535)
"""the port of the mail server"""
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
"""Default: none: no login
the login at the mail server"""
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD")
"""the password at the mail server"""
EMAIL_USE_TLS = env.flag("EMAIL_USE_TLS")
"""`1`: with STARTTLS, usually at port 587"""
EMAIL_USE_SSL = env.flag("EMAIL_USE_SSL")
"""`1`: with TLS from the start, usually at port 465"""
if EMAIL_USE_TLS and EMAIL_USE_SSL:
    raise ImproperlyConfigured("EMAIL_USE_TLS and EMAIL_USE_SSL exclude each other: set one of them")
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", f"clawbridge@{urlsplit(PUBLIC_URL).hostname}")
"""Default: `clawbridge@` and the host of `PUBLIC_URL`
the sender of mails"""

# Metrics, logs and traces for operators.
LOG_LEVEL = env.choice("LOG_LEVEL", "WARNING", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
"""the least severe messages that are logged"""
LOG_FORMAT = env.choice("LOG_FORMAT", "text", ("text", "json"))
"""`json`: one object per line, see [logs](../howto/operate.md#logs)"""
METRICS_TOKEN = env.text("METRICS_TOKEN")
"""a Bearer token for [`/metrics`](metrics.md); without this setting only this machine can read the metrics"""
OTEL_ENDPOINT = env.text("OTEL_EXPORTER_OTLP_ENDPOINT")
"""Default: none: no spans
where to send [spans](tracing.md#spans), such as `http://127.0.0.1:4318`: OTLP over HTTP, in batches. The other
`OTEL_…` variables of the exporter and the batch processor work too"""
OTEL_SHARE = env.fraction("OTEL_TRACES_SAMPLER_ARG", 1.0)
"""with an endpoint: the share that the hub records of the traces that begin there. For traces of a caller, the
caller's own sampling flag decides"""
