"""Other buses for agents, and two brokers, doing the same work as ours in the same run."""
