"""The study of the simulated fleet: errors, attacks, goals, and the steps of its rules.

Nothing here is part of a deployed agent or server.

Imports run from left to right: `simulated_day` > `client_attacks`, `evaluation`, `goals`, `privacy_audit`, `steps` >
`attacks`.
"""

from causeway.fleet import require_packages

require_packages()
