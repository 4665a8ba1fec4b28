"""What HTTP reaches: completions, responses, models, and the agents of teams."""
