"""Saved sets of questions to an agent, with the properties that its answers are expected to have."""
