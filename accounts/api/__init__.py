"""Accounts over REST: who calls, which sessions and tokens they have, and ending them."""
