"""The only door for outsiders: everything that is not the daemon reaches the bus through this."""
