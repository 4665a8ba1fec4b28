"""What HTTP reaches: the calls, the cards, the pages and the reference."""
