"""What the developer reference says: read from the code, and from pages that tests hold to the code."""
