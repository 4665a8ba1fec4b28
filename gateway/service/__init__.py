"""The verbs of a team: messages, queued messages, sessions, statuses, proposals; and the parts of a process."""
