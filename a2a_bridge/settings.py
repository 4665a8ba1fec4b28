"""The settings that `a2a_bridge` reads (kit/env.py). The hub sets what has no value here (docs/adr/0106)."""

from kit import env

PUBLIC_URL: str
DEV_LOGIN: bool
TASK_STORE: str
TASKS_KEPT_DAYS: int

REPLY_WAIT_S = env.seconds("REPLY_WAIT_S", 60)
"""seconds a caller waits for a reply"""
PUSH_CONFIGS_PER_CALLER = env.integer("PUSH_CONFIGS_PER_CALLER", 1000)
"""push configs all tasks of one caller may have"""
SHARES_PER_OWNER = env.integer("SHARES_PER_OWNER", 1000)
"""shared answers one user may have"""
SHARES_KEPT_DAYS = env.integer("SHARES_KEPT_DAYS", 365, least=1, most=36_500)
"""days after which a shared answer is not shown any more, at the latest"""
EXCHANGES_KEPT_DAYS = env.integer("EXCHANGES_KEPT_DAYS", 30, least=0, most=36_500)
"""days for which the requests and responses of asks are kept for the page of an ask, at most as long as the text
of its question. 0 records none"""
EXCHANGE_BODY_BYTES = env.integer("EXCHANGE_BODY_BYTES", 16_384, least=256, most=1_048_576)
"""bytes of a recorded body that are kept; of a longer stream the first and the last frames"""
EXCHANGES_PER_CALLER = env.integer("EXCHANGES_PER_CALLER", 1_000, least=1)
"""recorded requests of one caller that are kept; the oldest ones above this are deleted every minute"""
