"""Text search behind one interface."""
