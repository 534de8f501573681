"""The table of prior knowledge: every feature has a row, roles and signs are those of the field, users may add rows."""

import pytest

from causeway.core.errors import TableError
from causeway.core.feature_registry import FEATURE_BY_NAME
from causeway.core.names import prior_knowledge
from causeway.core.names.prior_knowledge import added, knowledge_of, table


def role_of(name, tier):
    return knowledge_of(name, tier).role


def test_every_feature_has_a_row_with_a_reason_and_unknown_names_are_mediators():
    names = {row.column for row in table()}
    assert all(knowledge_of(name, one.tier).column in names for name, one in FEATURE_BY_NAME.items())
    assert all(row.why for row in table())
    assert role_of("sm_clock_hz", "context") == role_of("dram_sectors", "counter") == "mediator"
    assert role_of("cluster_size", "launch") == role_of("block_x", "launch") == "lever"
    assert role_of("operator", "context") == role_of("matmul_m", "context") == "lever"
    assert role_of("since_start_ns", "context") == role_of("step", "context") == "clock"
    assert role_of("previous_deviation", "context") == "lag"
    assert role_of("throttle_thermal", "context") == "exposure"


def test_a_counter_is_measured_during_the_launch_whatever_its_name():
    assert knowledge_of("grid_x", "counter").role == "mediator"
    assert knowledge_of("stall_memory_queue_per_issue", "counter").sign == "+"


def test_the_length_of_a_sequence_is_known_before_the_launch_in_a_table_of_a_users_own():
    known = knowledge_of("sequence_length", "counter")
    assert (known.role, known.known, known.sign) == ("lever", "before", "+")
    assert [row.column for row in table() if row.of_users] == ["sequence_length"]
    assert knowledge_of("sequence_length_ratio", "counter").role == "mediator"
    own = added([{"column": "sequence_length", "known": "during"}])
    assert knowledge_of("sequence_length", "counter", own).role == "mediator"


def test_a_users_rows_come_first():
    own = added([{"column": "batch_*", "known": "before"}, {"column": "polls", "known": "during", "sign": "+"}])
    assert knowledge_of("batch_size", "counter", own).role == "lever"
    assert (knowledge_of("polls", "counter", own).role, knowledge_of("polls", "counter", own).sign) == ("mediator", "+")
    assert knowledge_of("batches", "counter", own).known == "during"
    assert added([{"column": "x", "known": "at the start"}])[0].role == "exposure"
    assert added([{"column": "x", "known": "before", "role": "clock"}])[0].role == "clock"


def test_a_row_that_says_something_else_is_refused_by_its_number(tmp_path, monkeypatch):
    wrong = tmp_path / "prior_knowledge.tsv"
    head = "column\trole\tknown\tsign\tdetail\tthrough\twhy\tusers\n"
    wrong.write_text(f"# a comment\n{head}x\tlever\tbefore\tany\t\t\tw\ny\tlever\tbefore\tup\t\t\tw\n")
    monkeypatch.setattr(prior_knowledge, "FILE", wrong)
    table.cache_clear()
    with pytest.raises(TableError, match=r"row 2: sign is 'up'; it must be one of \+, -, any"):
        table()
    table.cache_clear()
