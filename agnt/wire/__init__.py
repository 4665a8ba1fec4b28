"""The wire of AGNT: shapes of envelopes and payloads, their checks, signatures and errors. The module does no I/O.

`clawbridge.agnt` has what clients need too: names of fields, errors, signatures, hops and the replies of venues.
"""
