"""One folder for each dialect: how its requests are read, how answers are rendered, how both are described."""
