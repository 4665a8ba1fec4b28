"""Whether this process still takes new work. `/livez` and `/readyz` are in hub/watch/endpoints.py."""

import threading

draining = threading.Event()
