"""How reports are protected and aggregated: envelopes, secret sharing, homomorphic sums, noise, the privacy ledger.

What may be released of the sums stands in `release`.

Imports run from left to right: `protect_reports` > `modes` > `aggregator` > `homomorphic`, `local_dp`, `secret_sharing`
> `envelope`, `ledger`, `noise`.
"""

from causeway.fleet import require_packages

require_packages()
