"""The agents of a team that are connected, each in its seat."""
