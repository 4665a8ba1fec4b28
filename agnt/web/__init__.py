"""Pages of a network on its owner's desk, and the page on which developers sign an envelope."""
