"""What measures and breaks a hub, and what tests share with it. No program of the hub imports it."""
