"""Bytes in, events out: every format that leaves a process, without any IO."""
