"""A local message bus and shared memory for coding agents of one user on one machine."""

__version__ = "0.1.0"
