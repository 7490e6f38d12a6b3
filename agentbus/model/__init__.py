"""What the bus is about: pure values and rules, no IO."""
