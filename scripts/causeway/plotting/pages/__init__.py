"""Pages of their own: every graph of a target, its causes examined, its parallel coordinates, a comparison, comparisons
over time, the fleet; the gate as Markdown.

The overview has a folder of its own.

Imports run from left to right: `causal_graphs`, `coordinates_page`, `examined_causes`, `fleet_page`, `gate_summary`,
`history_page` > `comparison_page`.
"""
