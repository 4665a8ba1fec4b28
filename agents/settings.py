"""The settings that `agents` reads (kit/env.py). The hub sets what has no value here (docs/adr/0106)."""

from kit import env

PUBLIC_URL: str
SENDS_MAIL: bool
DEFAULT_FROM_EMAIL: str

AGENTS_PER_OWNER = env.integer("AGENTS_PER_OWNER", 1000)
"""agents one owner may have, drafts and remote A2A servers counted"""
SESSIONS_PER_OWNER = env.integer("SESSIONS_PER_OWNER", 5000)
"""sessions one owner may have, archived ones counted"""
SOCKETS_PER_OWNER = env.integer("SOCKETS_PER_OWNER", 1000)
"""agents one owner may have connected at once, over all processes, idle sockets counted"""
STORAGE_PER_OWNER_MB = env.integer("STORAGE_PER_OWNER_MB", 2048)
"""mebibytes of one owner's files and transcripts: the owner's uploads, events of the owner's sessions, the owner's
op-messages, and 512 bytes for each row of token usage. When the storage is full, the hub refuses files, events,
op-messages and reports of token usage, and keeps questions and replies. Each process counts events by itself, and
may exceed the limit by a hundredth"""
FILES_PER_OWNER = env.integer("FILES_PER_OWNER", 5000)
"""files one account may have, each counted until it is deleted or expires"""
FILES_PER_ASK_MB = env.integer("FILES_PER_ASK_MB", 20, least=1, most=200)
"""mebibytes of the files of one question together, uploaded ones and those within the message"""
PICTURE_MEGAPIXELS = env.integer("PICTURE_MEGAPIXELS", 50, least=1, most=1000)
"""million pixels of a picture that a caller sends, by the picture's header; larger ones are refused, because a few
kilobytes can unpack to gigabytes where the picture is shown"""
FILE_SCAN_COMMAND = env.text("FILE_SCAN_COMMAND")
"""Default: none: files are not scanned
a command that [checks each file](../howto/scan-files.md) before the hub stores it, such as `clamdscan -`. It
gets the file as standard input. Exit code 0: the file is stored, 1: it is refused. The hub runs no shell"""
FILE_SCAN_ICAP = env.text("FILE_SCAN_ICAP")
"""Default: none: files are not scanned
the address of an ICAP service that [checks each file](../howto/scan-files.md), such as `icap://127.0.0.1:1344/avscan`"""
FILE_SCAN_WITHIN_S = env.seconds("FILE_SCAN_WITHIN_S", 30)
"""seconds after which a scan has failed, and the file is not stored"""
FILES_KEPT_DAYS = env.integer("FILES_KEPT_DAYS", 30, least=1, most=36_500)
"""days after which a file of a session is deleted, counted from its upload. Existing files keep their date"""
REMOTE_ALLOW_PRIVATE = env.flag("REMOTE_ALLOW_PRIVATE")
"""`1`: [remote A2A servers](../howto/publish-a-remote-agent.md) may be at any address and port, also by plain
http. Every user can then make the hub send requests into your network"""
REMOTE_PORTS = env.ports("REMOTE_PORTS", "443 8443")
"""ports remote A2A servers may be at"""
REMOTE_RETRY_S = env.seconds("REMOTE_RETRY_S", 30)
"""seconds for which the hub does not call a remote A2A server that failed 5 times in a row; doubled with each
failed try, up to 20 times as long"""
TRACE_UI_URL = env.link_template("TRACE_UI_URL", "{trace_id}")
"""Default: none: no links
the address of a trace in your tracing UI, with `{trace_id}` for its id, such as
`https://jaeger.example.org/trace/{trace_id}`. The [audit](tracing.md) links every trace id to it"""
