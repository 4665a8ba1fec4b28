"""The settings that `a2a_bridge` reads (kit/env.py). The hub sets what has no value here (docs/adr/0106)."""

from kit import env

PUBLIC_URL: str
DEV_LOGIN: bool

REPLY_WAIT_S = env.seconds("REPLY_WAIT_S", 60)
"""seconds a caller waits for a reply"""
PUSH_CONFIGS_PER_CALLER = env.integer("PUSH_CONFIGS_PER_CALLER", 1000)
"""push configs all tasks of one caller may have"""
SHARES_PER_OWNER = env.integer("SHARES_PER_OWNER", 1000)
"""shared answers one user may have"""
SHARES_KEPT_DAYS = env.integer("SHARES_KEPT_DAYS", 365, least=1, most=36_500)
"""days after which a shared answer is not shown any more, at the latest"""
