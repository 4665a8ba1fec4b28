"""The functions that change the rows of a network, and those that read them, for the surfaces of AGNT."""
