"""The wire of AGNT: shapes of envelopes and payloads, their checks, signatures and errors. No I/O.

`errors`, `fields`, `hops` and `signing` need Python alone: the connector carries them (docs/adr/0145).
"""
