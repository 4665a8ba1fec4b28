"""The settings that `evaluations` reads (kit/env.py). The hub sets what has no value here (docs/adr/0106)."""

from kit import env

PUBLIC_URL: str
REPLY_WAIT_S: float

RUNS_KEPT_DAYS = env.integer("RUNS_KEPT_DAYS", 90, least=1, most=36_500)
"""days for which runs of saved questions are kept, with the answers; at most 200 runs of a set"""
