"""`agentbus demo`: a throw-away bus, three agents on real adapters, a crash and the recovery.

place    a temporary directory with a configuration and a runtime directory of its own
agent    one `agentbus mcp` process, spoken to as a harness does: JSON lines on its stdio
ledger   what was accepted and what each agent received; pure
story    how it is told: who says what, how long it took
script   what happens, act by act
"""
