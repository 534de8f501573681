"""What the causal analysis says of simulated datasets, against what must hold of it."""
