"""Links: each implements one way to reach agents and knows nothing about callers."""
