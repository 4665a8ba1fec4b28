"""Measures the hub beside an echo server of the official SDK (docs/howto/bench.md)."""
