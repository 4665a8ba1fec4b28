"""Push notifications of A2A 1.0: addresses that are told what becomes of a task (docs/adr/0047)."""
