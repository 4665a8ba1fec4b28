"""From charges to bills: one for each customer of a network and UTC day, sent to an invoicer once."""
