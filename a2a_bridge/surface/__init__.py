"""The HTTP surface: the calls, the cards, the pages and the reference."""
