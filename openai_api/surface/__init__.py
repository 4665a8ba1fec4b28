"""The HTTP surface: completions, responses, models, and the agents of teams."""
