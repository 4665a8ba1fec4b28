"""The agents' socket, `/channel`."""
