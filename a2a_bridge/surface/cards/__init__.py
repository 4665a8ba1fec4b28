"""The AgentCard of a published agent, in two renderings of the same facts (docs/adr/0041).

`merged` is read by clients of every dialect; `strict` is a pure A2A 1.0 card, signed, and its extended form.
"""
