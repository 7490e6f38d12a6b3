"""What `init` and `doctor` know about each harness, and the hooks that harnesses run."""
