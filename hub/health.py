"""Whether this process still takes new work. `/livez` and `/readyz` are in hub/watch/door.py."""

import threading

draining = threading.Event()
