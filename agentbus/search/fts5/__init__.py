"""The index as a SQLite file of its own: `write` for the indexer, `read` for whoever asks."""
