"""What a team does: messages, queued messages, sessions, statuses, proposals; and the parts of a process."""
