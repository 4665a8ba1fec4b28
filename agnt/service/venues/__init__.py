"""The venues of a network: their fields, their changes, their files, and the index that answers envelopes."""
