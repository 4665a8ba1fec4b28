"""The verbs of the bridge: send, cancel, follow, list; the tasks, and the pushes to their addresses."""
