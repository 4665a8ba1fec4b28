"""One folder for each dialect: how its requests are read, what its answers look like, and how both are described."""
