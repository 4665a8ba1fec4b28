"""The account of a user as the staff sees and changes it: a page, and REST calls."""
