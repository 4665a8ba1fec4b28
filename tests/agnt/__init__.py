"""AGNT envelopes."""
