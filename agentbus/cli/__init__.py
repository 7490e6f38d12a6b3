"""The command line for people: thin commands over `client`, and pure renderers."""
