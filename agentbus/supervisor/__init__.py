"""The parent process: locks, the listening socket, children, the dedicated Redis. No event loop."""
