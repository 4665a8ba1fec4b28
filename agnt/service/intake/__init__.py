"""The way of an envelope: from its arrival over the decision in the database to its answer."""
