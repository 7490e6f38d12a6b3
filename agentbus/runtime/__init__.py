"""Process plumbing without domain: all of it loop-free but `child`, `links` and `tasks`."""
