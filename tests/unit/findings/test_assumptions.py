"""What must hold for a finding about a cause to be true."""

from made_results import analysis, cause, search

from causeway.findings.causes import cause_findings


def test_what_is_in_flight_counts_at_the_start_and_the_assumption_says_so():
    features = ("h2d_bytes_in_flight", "launches_in_flight", "rank")
    said = {one: cause_findings(analysis(), search(causes=[cause(one)]))[0].assumption for one in features}
    common = (
        "no unmeasured common cause of the feature and the target, and no searched column is an effect of the target"
    )
    later = f"{common}; what is in flight counts at the start of a launch: what begins later is not in the effect"
    assert said["rank"] == common
    assert all(said[feature].startswith(later) for feature in said if feature != "rank")
