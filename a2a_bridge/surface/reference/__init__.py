"""The content of the developer reference: read from the code, and from pages that tests compare with the code."""
