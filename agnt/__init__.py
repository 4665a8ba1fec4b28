"""Surface: AGNT envelopes, signed asks of outside programs to the venues of a network.

Imports point one way: the surfaces `endpoint`, `api`, `web` and `admin` call `service`; `service` uses `models`,
`client` and `wire`.
"""
