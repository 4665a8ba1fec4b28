"""What the gateway offers over REST to the owner of a team."""
