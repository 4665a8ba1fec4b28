"""Django's SQLite, with connections that a serving process opens once: the `ENGINE` of an embedded hub."""
