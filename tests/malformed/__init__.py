"""What is no sound request, over every method, dialect and binding."""
