"""What the surfaces of AGNT call: the functions that change the rows of a network, and those that read them."""
