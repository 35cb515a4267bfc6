"""The seven rules over the corpus: each case has the word and the causes of the judge before them, or the difference is
listed here with its reason.

Where a verdict needs a baseline run and the case has none, clean ones are made, as the run loop does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import HarnessError, UsageError
from harness.rules import judged
from harness.run_folder import sealed
from harness.scenario import Word
from tests.corpus import EVERY
from tests.corpus.case import Adversary, Right, Seen, seen
from tests.corpus.run_builder import RunBuilder

pytestmark = pytest.mark.usefixtures("asked_once")

TWIN = "twin of "
HELD, VOID, UNKNOWN, VIOLATED = Word.HELD, Word.VOID, Word.UNKNOWN, Word.VIOLATED
REASONS: dict[str, dict[Word, list[str]]] = {
    "reprocessing cannot change these expected rows, and a pipeline that adds its rows would be caught": {
        HELD: [
            "cancelling/amounts_that_cancel_within_the_batch",
            "nothing_written/a_maximum_that_is_written_in_place",
            "nothing_written/a_minimum_of_the_first_batch",
            "nothing_written/a_record_that_was_sent_twice",
            "nothing_written/overwritten_later",
            "unconfirmed/a_batch_that_takes_rows_away",
            "what_is_read/upsert_of_a_maximum",
        ],
    },
    "two errors cancel exactly, and are no finding; one of them alone would be": {
        HELD: [
            "cancelling/a_batch_doubled_and_its_like_lost",
            "cancelling/one_fault_doubles_what_the_next_one_loses",
            "own_offsets/a_slice_doubled_and_its_like_lost",
            "rivals/a_slice_of_another_checkpoint",
            "rivals/rows_without_an_identity",
            "rivals/totals_by_a_query_of_its_own",
            "seen_later/a_batch_that_was_lost_before",
        ],
    },
    "baseline runs are without the loss, so that a fault did it; at-most-once allows it, whatever batch it was of": {
        HELD: [
            "also_without_faults/a_total_that_had_it_and_has_not",
            "at_most_once/gone_after_it_was_there",
            "at_most_once/half_of_it_was_there_and_is_gone",
            "at_most_once/lost_before_the_fault",
            "at_most_once/two_of_forty",
            "bystanders/lost_before_a_checkpoint_was_deleted",
            "in_advance/a_loss_that_is_acquitted_by_a_habit",
            "own_offsets/a_heartbeat_under_at_most_once",
            "seen_later/sparks_word_of_rows_that_are_not_there",
            "seen_later/totals_that_had_it_later",
            TWIN + "seen_later/totals_that_had_it_later",
            TWIN + "unconfirmed/a_hit_of_which_nothing_is_known",
            TWIN + "vague/a_cut_that_lasts",
            TWIN + "vague/a_driver_that_died_later",
            TWIN + "vague/an_attempt_that_died_by_itself",
            "two_sources/what_one_half_had_in_flight_is_lost",
            "unconfirmed/rows_that_share_a_key_and_were_there",
            "vague/a_cut_that_lasts",
            "vague/a_driver_that_died_later",
            "vague/a_driver_that_survived_its_pause",
            "vague/an_attempt_that_died_by_itself",
            "witnesses/a_slice_lost_before_under_at_most_once",
            "witnesses/lost_before_an_executor_died",
        ],
    },
    "a multiplicity of what a step interrupted gives the totals exactly, and it is one that the guarantee allows": {
        HELD: [
            "counters/a_total_that_repetition_makes_smaller",
            "counters/another_batch_is_missing",
            "counters/any_batch_may_be_the_missing_one",
            "counters/two_doubled_and_one_lost_read_as_one_twice_more",
            "rivals/an_average_beside_the_totals",
            TWIN + "counters/a_doubled_and_a_lost_batch_read_as_one_less",
            TWIN + "counters/another_batch_is_missing",
            TWIN + "counters/any_batch_may_be_the_missing_one",
            TWIN + "rivals/slices_of_saved_offsets",
            "vague/a_column_that_grows_by_a_loss",
        ],
    },
    "other whole batches come to the same totals, or the expected rows are joined: the evidence does not tell": {
        UNKNOWN: [
            "counters/a_doubled_and_a_lost_batch_read_as_one_less",
        ],
    },
    "baseline runs are without it, so that the step is named that may have done it, where none was": {
        VIOLATED: [
            "bystanders/all_but_one_record_of_a_batch_are_filtered_out",
            "bystanders/one_record_of_a_total_is_there_twice",
            "bystanders/sums_of_doubles_that_are_wrong_in_the_end",
            "causes/batch_of_the_same_number_in_another_query",
            "causes/one_row_of_the_hit_batch",
            "causes/one_row_that_was_there",
            "causes/second_checkpoint_counts_from_zero_again",
            "causes/the_batch_beside_the_hit_one",
            "causes/ties_between_two_hit_batches",
            "causes/ties_with_batches_that_were_not_hit",
            "dropped/dropped_and_one_lost",
            "expectations/a_loss_beside_the_fault",
            "expectations/rows_of_a_batch_that_was_not_hit",
            "going_back/a_second_fault_hits_while_it_goes_back",
            "going_back/it_begins_in_the_middle_of_what_was_planned",
            "going_back/it_had_gone_back_before_the_fault",
            "going_back/it_was_going_back_when_the_fault_hit",
            "going_back/one_of_what_was_passed_over_came",
            "going_back/what_lies_behind_what_was_passed_over",
            "in_advance/a_habit_that_another_snapshot_shows",
            "in_advance/other_events_of_the_same_keys",
            "nothing_written/a_rival_that_the_effect_cannot_be_run_with",
            "rivals/a_batch_that_nobody_hit_was_doubled_beside_one",
            "rivals/sales_without_an_id",
            "seen_later/a_row_of_the_batch_in_flight",
            "seen_later/killed_before_any_query",
            "seen_later/right_when_the_next_fault_hit",
            TWIN + "counters/a_lost_and_a_doubled_batch_read_as_one_more",
            TWIN + "counters/a_total_that_repetition_makes_smaller",
            TWIN + "counters/two_doubled_and_one_lost_read_as_one_twice_more",
            TWIN + "going_back/old_records_beside_new_ones",
            TWIN + "in_advance/an_update_that_never_came",
            TWIN + "late_sinks/saved_offsets_of_a_late_sink",
            TWIN + "rivals/an_average_beside_the_totals",
            TWIN + "seen_later/a_row_of_the_batch_in_flight",
            TWIN + "seen_later/as_much_in_the_next_batch",
            TWIN + "settling/a_record_came_after_the_source_was_read_back",
            TWIN + "settling/rows_lie_behind_an_open_transaction",
            TWIN + "settling/the_source_lost_a_record_that_was_taken",
            TWIN + "two_sources/drained_by_the_faster_half",
            TWIN + "two_sources/drained_by_the_faster_query",
            TWIN + "vague/a_control_that_lost_another_row",
            TWIN + "wrong_effects/a_difference_of_sums",
            TWIN + "wrong_effects/an_account_that_closes_at_zero",
            TWIN + "wrong_effects/effect_asks_for_other_amounts",
            TWIN + "wrong_effects/flaky_loser",
            TWIN + "wrong_effects/header_row",
            TWIN + "wrong_effects/order_that_nobody_keeps",
            "unconfirmed/one_record_of_a_total_is_missing",
            "unconfirmed/some_rows_of_each_key_come_again",
            "unrounded/a_maximum_of_an_account_is_another",
            "unrounded/a_record_of_a_distinct_effect_has_another_amount",
            "vague/a_record_that_came_again_has_another_amount",
            "witnesses/a_slice_lost_before_the_one_in_flight",
        ],
    },
    "baseline runs decide, whether they are those of the case or clean ones that were made": {
        VIOLATED: [
            "causes/cleared_now_and_then",
            "seen_later/a_control_that_lost_another_batch",
            "stalled/nothing_to_hold_it_against",
            TWIN + "stalled/trigger_interval_of_two_minutes",
            "unconfirmed/each_control_lost_other_rows",
        ],
    },
    "the readings leave more than one step, and all of them are named": {
        VIOLATED: [
            "seen_later/an_attempt_that_had_done_nothing",
            "seen_later/as_much_in_the_next_batch",
            TWIN + "causes/cleared_after_the_second_fault",
        ],
    },
    "baseline runs hold the expected keys, so it is the right table, and what is missing there counts": {
        VIOLATED: [
            TWIN + "names/findings_of_a_namesake",
            "what_is_read/another_table_of_a_slow_program",
        ],
    },
    "the next attempt began beyond all that was in flight, so that nothing was processed again": {
        VOID: [
            "at_most_once/more_than_was_offered_meanwhile",
            TWIN + "at_most_once/more_than_was_offered_meanwhile",
            TWIN + "vague/totals_of_a_batch_that_was_committed_by_then",
        ],
    },
}
CHANGED = {name: word for reason in REASONS.values() for word, names in reason.items() for name in names}


def answer(run: RunBuilder) -> Seen:
    """What the rules say of a case, with clean baseline runs where they need some and it has none."""
    try:
        folder = run.write()
        if (folder / "digests.json").is_file():
            sealed.opened(folder)
        found = judged(folder)
        if found.wants and not run.controls:
            run.path = run.path.with_name("with-baseline-runs")
            run.calm()
            found = judged(run.write())
    except (HarnessError, UsageError) as refusal:
        return Seen(word=Word.ERROR, reasons=(str(refusal),))
    return seen(found.verdict, found.wants)


def agrees(found: Seen, right: Right) -> bool:
    """Return whether the word is the same, and the causes of a violation."""
    causes = right.faults is None or found.word is not VIOLATED or found.faults == right.faults
    return found.word is right.word and causes


@pytest.mark.parametrize("twin", [False, True], ids=["case", "twin"])
@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.id)
def test_the_rules_agree_or_the_difference_is_listed(case: Adversary, twin: bool, tmp_path: Path) -> None:
    run, right = (case.other(tmp_path / "run")[0], case.twin) if twin else (case.case(tmp_path / "run"), case.right)
    found, name = answer(run), (TWIN if twin else "") + case.id
    if name in CHANGED:
        assert found.word is CHANGED[name], found
        assert not agrees(found, right), "it agrees: take it off the list"
    else:
        assert agrees(found, right), (found, right)


def test_the_list_names_cases() -> None:
    assert {name.removeprefix(TWIN) for name in CHANGED} <= {case.id for case in EVERY}
    assert sum(len(names) for reason in REASONS.values() for names in reason.values()) == len(CHANGED)
