"""The hot copy in Redis: names, reading, and (for the projector alone) writing."""
