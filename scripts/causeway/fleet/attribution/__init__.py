"""What a client computes before its report is protected: tokens of kernel names, attribution to the signed catalogue's
applications, encoding as counts.

How a report is protected stands in `protection`.

Imports run from left to right: `attribution`, `exports` > `catalogue` > `encoding`, `tokens`.
"""

from causeway.fleet import require_packages

require_packages()
