"""A deployment's processes: agents, the two servers, the designer's reader, and the TLS transport between them.

What they compute stands in `attribution`, `protection` and `release`.

Imports run from left to right: `reader` > `agent` > `deploy`, `server` > `own_folder`, `public_folder`,
`store`, `transport`.
"""

from causeway.fleet import require_packages

require_packages()
