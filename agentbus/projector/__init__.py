"""The process that keeps Redis equal to the database."""
