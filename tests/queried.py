"""Runs the queries of findings and overview as a reader would: DuckDB, in the results folder, and nothing of ours."""

import math
import os

import duckdb


def answers(queries, results):
    """Return the one value that each query gives, by query; a query that gives no single value is an error.

    `results` is the results folder.
    """
    before = os.getcwd()
    found = {}
    os.chdir(results)
    try:
        with duckdb.connect(config={"threads": 1}) as database:
            for query in dict.fromkeys(queries):
                rows = database.execute(query).fetchall()
                assert [len(row) for row in rows] == [1], (query, rows)
                found[query] = rows[0][0]
    finally:
        os.chdir(before)
    return found


def same(found, wanted):
    """Return whether a query gave the value: texts and whole numbers to the letter, others but for rounding in the
    last digits.
    """
    if isinstance(wanted, (int, str)) or not isinstance(found, (int, float)):
        return found == wanted
    return math.isclose(found, wanted, rel_tol=1e-12)


def every_statement(findings):
    """Return the findings and, behind each, the further claims about its kernel."""
    return [one for finding in findings for one in (finding, *finding["also"])]


def wrong_findings(findings, results):
    """Return the findings whose query does not give the value, or the bound, that they state."""
    findings = every_statement(findings)
    pairs = [(finding["id"], finding["evidence"]["query"], finding["evidence"]["value"]) for finding in findings]
    pairs += [
        (finding["id"], finding["recoverable_query"], finding["recoverable_ns"])
        for finding in findings
        if finding["recoverable_query"]
    ]
    pairs += [
        (finding["id"], finding["replay"]["query"], finding["replay"]["predicted_ns"])
        for finding in findings
        if finding["replay"]
    ]
    found = answers([query for _, query, _ in pairs], results)
    return [(name, query, found[query], wanted) for name, query, wanted in pairs if not same(found[query], wanted)]
