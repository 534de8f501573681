"""Pages of their own: every graph of a target, its causes examined, interactive figures, a comparison, comparisons
over time, the fleet; the gate as Markdown.

The overview has a folder of its own.

Imports run from left to right: `causal_graphs`, `examined_causes`, `fleet_page`, `gate_summary`, `history_page`,
`interactive_page` > `comparison_page`.
"""
