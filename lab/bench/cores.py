"""On which processor cores servers and load run: the first and the last that this process may use."""

import os

CPUS = sorted(os.sched_getaffinity(0))
SERVER_CORE, LOAD_CORE = CPUS[0], CPUS[-1]
