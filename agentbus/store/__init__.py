"""The bus database: its schema, and named statements that read it and that write it."""
