"""What the rules of the lab share: the path of its code, and the records of its figures.

Required: what config.smk and report.smk set. Sets: two records more in FIGURES, none of them part of `all`.
"""

sys.path.insert(0, str(BASE))  # the package `lab`: a clone's alone, no part of the wheel

FIGURES |= {
    figure.name: figure
    for figure in [
        Figure(
            name="scaling",
            per="run",
            file="scaling/scaling.svg",
            category="8. How it scales",
            label="time, throughput and efficiency over ranks",
            in_all=False,
        ),
        Figure(
            name="validation",
            per="run",
            file="validation/validation.html",
            category="Error rate of the method",
            label="error rate of the causal analysis",
            in_all=False,
        ),
    ]
}
