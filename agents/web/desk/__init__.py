"""The owner's desk: pages on which an owner sees and steers what is theirs."""
