"""Asks venues: each ask passes the breakers, then goes to a session of the hub, or to a server over HTTP."""
