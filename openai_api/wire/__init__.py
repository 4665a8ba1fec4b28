"""Requests, answers and errors as OpenAI's API writes them. The module does no I/O."""
