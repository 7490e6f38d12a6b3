"""The process that adapters are connected to: attachments, validation, credit, prefetch push."""
