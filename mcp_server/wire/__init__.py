"""What each tool takes."""
