"""The indexer: keeps the text index up with the database, and searches it."""
