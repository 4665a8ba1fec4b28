"""`manage.py move_database`: from SQLite to PostgreSQL."""
