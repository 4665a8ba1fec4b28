"""Requests, answers and errors as OpenAI's API writes them. No I/O."""
