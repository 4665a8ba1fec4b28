"""Runs as the benches would have measured them."""

from lab.bench.load import LoadRun
from lab.bench.meter import Used

USED = Used(
    took_s=1.0,
    web_s=0.5,
    postgres_s=0.0,
    redis_s=0.0,
    agents_s=0.1,
    load_s=0.1,
    others=0.0,
    stolen=0.0,
    load_core=0.5,
)


def run(asks_per_s: float, *, p95_ms: float = 1.5, errors: int = 0, rate: float | None = None) -> LoadRun:
    return LoadRun(
        target="hub",
        connections=32,
        asks_per_s=asks_per_s,
        p50_ms=1.0,
        p95_ms=p95_ms,
        p99_ms=2.0,
        max_ms=3.0,
        errors=errors,
        first_error="",
        generator_cpu=0.1,
        used=USED,
        rate=rate,
    )
