"""Ways to reach an agent: each a link, knowing one agent-side wire and nothing of callers."""
