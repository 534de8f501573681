"""A deployment's processes: agents, the two servers, the designer's reader, and the TLS transport between them.

What they compute stands in `attribution`, `protection` and `release`.

Imports run from left to right: `reader` > `agent` > `deploy`, `server` > `public_folder`,
`store`, `transport`.
"""
