"""Pages of their own: causes, interactive figures, comparisons, the fleet; the gate as Markdown.

The overview has a folder of its own.

Imports run from left to right: `causes_page`, `fleet_page`, `gate_summary`, `interactive_page` > `comparison_page`.
"""
