"""What measures and breaks a hub, and what tests share with it. No program of the hub imports it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
