"""The agents of a team, their statuses, and the rules of the team."""
