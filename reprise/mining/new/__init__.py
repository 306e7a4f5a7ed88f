"""A new extractor: its folder, and names for it from a look at the compiler's sources.

``suggest`` finds likely sites by names and idioms (``extractors/_suggest/``: queries and patterns,
data only); ``scaffold`` writes ``extractor.toml``, with what was found and where.
"""
