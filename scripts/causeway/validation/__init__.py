"""How often the causal analysis errs: tables with known causes, drawn from worlds that do not keep to its assumptions, and marks."""
