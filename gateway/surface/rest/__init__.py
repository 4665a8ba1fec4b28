"""The resources of a team over REST."""
