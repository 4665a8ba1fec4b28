"""Surface: AGNT envelopes, signed asks of outside programs to the venues of a network."""
