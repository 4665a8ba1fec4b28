"""Names are unguessable: no randomness is given twice, not to a thread and not to a forked child."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

from kit.ids import POOL_BYTES, random_hex, time_ordered, unguessable

MANY = 3 * POOL_BYTES // 16


def test_no_name_is_made_twice_in_any_thread() -> None:
    gate = threading.Barrier(4)

    def make() -> list[str]:
        gate.wait(10)
        return [random_hex(16) for _ in range(MANY)]

    with ThreadPoolExecutor(4) as threads:
        made = [name for one in [threads.submit(make) for _ in range(4)] for name in one.result()]
    assert len(set(made)) == 4 * MANY
    assert {len(name) for name in made} == {32}


def test_a_forked_child_makes_other_names_than_its_parent() -> None:
    random_hex(16)  # the pool is filled
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writes, random_hex(16).encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    with os.fdopen(reads) as told:
        assert told.read() != random_hex(16)


def test_names_say_what_they_say() -> None:
    first, second = time_ordered(), time_ordered()
    assert len(first) == 38
    assert first[:12] <= second[:12]
    assert unguessable("task-").startswith("task-")
