"""Runs as the benches would have measured them."""

from lab.bench.load import Run


def run(asks_per_s: float) -> Run:
    """A run of a hub at this rate."""
    return Run(
        target="hub",
        connections=32,
        asks_per_s=asks_per_s,
        p50_ms=1.0,
        p99_ms=2.0,
        errors=0,
        first_error="",
        server_cpu=0.5,
        stolen=0.0,
        load_core=0.5,
        generator_cpu=0.1,
    )
