"""Benches and fault injection for a hub, and the helpers that tests share with them. No program of the hub imports
`lab`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
