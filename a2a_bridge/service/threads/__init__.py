"""Threads: the tasks of one A2A context, as the journal keeps them, for their caller to find and read again."""
