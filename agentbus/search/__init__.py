"""Text search behind one interface, over two indexes: SQLite FTS5, and Redis' query engine.

normalise   text as tokens, the same for documents and queries        pure
query       what somebody typed, as terms                             pure
document    what is indexed of a message                              pure
request     a search with its filters, and its continuation           pure
snippet     the place in a message that a search shows                pure
fts5        an index file, written by the indexer
query_engine   an index within Redis, written by the projector
"""
