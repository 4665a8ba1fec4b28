"""Handles envelopes: from the arrival of an envelope, by a decision in the database, to its answer."""
