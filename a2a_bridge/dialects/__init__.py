"""One module a dialect: what its requests must look like, and how it renders a task."""
