"""Pages of their own: every graph of a target, its causes examined, its parallel coordinates, a comparison, the fleet.

The overview has a folder of its own.

Imports run from left to right: `causal_graphs`, `comparison_page`, `coordinates_page`, `examined_causes`, `fleet_page`.
"""
