"""What findings are tied to: records, batches, and every way in which whole batches explain a wrong total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harness.checkers.cells import Row, canonical
from harness.checkers.compare import Case, Key, Mark
from harness.checkers.origin import RECORDS_MAX, Clues, Origin, attribute, explanations, joined, together
from harness.checkers.wrong_total import Totals, alike, explain, note, only_rounding
from harness.scenario import Finding, Kind, RecordRef

COLUMNS = ("account", "n", "total")
FAMILIES = ("text", "number", "number")


def attributed(findings: Sequence[Finding], clues: Clues) -> list[Finding]:
    return attribute(findings, clues, explanations(findings, clues.totals))


def totals(batches: Mapping[int, Mapping[str, tuple[str | None, ...]]], **changes: object) -> Totals:
    made: dict[int, dict[Key, Row]] = {b: {(k,): (k, *row) for k, row in rows.items()} for b, rows in batches.items()}
    whole = Totals(columns=COLUMNS, families=FAMILIES, payload=(1, 2), contributions=made)
    return replace(whole, **changes)  # type: ignore[arg-type]


def wrong(expected: tuple[str | None, ...], found: tuple[str | None, ...], key: str = "a") -> Finding:
    return Finding(
        kind=Kind.WRONG_AGGREGATE,
        sink="s",
        key={"account": key},
        expected=(dict(zip(COLUMNS, (key, *expected), strict=True)),),
        found=(dict(zip(COLUMNS, (key, *found), strict=True)),),
    )


THREE = totals({1: {"a": ("1", "10")}, 2: {"a": ("2", "20.5")}, 3: {"a": ("4", "41")}})
UNLIKE = totals({1: {"a": ("1", "10")}, 2: {"a": ("2", "20.5")}, 3: {"a": ("4", "42")}})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (("9", "92"), "too high by exactly batch 2 or too high by exactly batch 3 and too low by exactly batch 2"),
        (("5", "51"), "too low by exactly batch 2 or too high by exactly batch 2 and too low by exactly batch 3"),
        (("6", "61.5"), "too low by exactly batch 1"),
        (("10", "102"), "too high by exactly batches 1 and 2"),
        (("9", "91.5"), "too high by exactly batches 1 and 1"),
        (("1", "10"), "too low by exactly batches 2 and 3"),
        (("8", "82"), "too high by exactly batch 2 and too low by exactly batch 1"),
        (("8", "83"), ""),
        (("5", "51.5"), ""),
        (("6", "61"), "too high by exactly batch 1 and too low by exactly batch 2"),
        (("9", "91.50001"), ""),
        (("11", "112.5"), "too high by exactly batch 3 or too high by exactly batches 2 and 2"),
        (("15", "153.5"), "too high by exactly batches 3 and 3"),
        (("14", "143"), ""),
        (("8", "71.5"), ""),
        ((None, "71.5"), ""),
        (("NaN", "71.5"), ""),
    ],
)
def test_a_difference_is_explained_by_whole_batches(found: tuple[str | None, ...], words: str) -> None:
    (options,) = explain([wrong(("7", "71.5"), found)], THREE)
    assert note(options) == words


def test_a_null_total_is_the_sum_of_nothing() -> None:
    one = totals({1: {"a": ("1", None)}, 2: {"a": ("1", "5")}})
    assert [note(e) for e in explain([wrong(("2", "5"), ("1", None))], one)] == ["too low by exactly batch 2"]


def test_long_numbers_are_summed_exactly() -> None:
    big = 10**37
    long = totals({1: {"a": ("1", str(big))}, 2: {"a": ("1", f"{big + 1}.25")}})
    (explanation,) = explain([wrong(("2", f"{2 * big + 1}.25"), ("3", f"{3 * big + 2}.5"))], long)
    assert note(explanation) == "too high by exactly batch 2"
    assert explain([wrong(("2", f"{2 * big + 1}.25"), ("3", f"{3 * big + 2}.25"))], long) == [()]


def test_endless_numbers_explain_nothing_and_are_no_trouble() -> None:
    endless = totals({1: {"a": ("1", "Infinity")}, 2: {"a": ("1", "-Infinity")}})
    assert explain([wrong(("2", "NaN"), ("3", "NaN"))], endless) == [(((1, 2),), ((1, 1),))]
    endless = totals({1: {"a": ("1", "Infinity")}, 2: {"a": ("1", "5")}})
    assert explain([wrong(("2", "Infinity"), ("3", "Infinity"))], endless) == [(((1, 2),), ((1, 1),))]
    assert explain([wrong(("2", "Infinity"), ("3", "5"))], endless) == [()]


def test_columns_that_are_not_sums_must_agree() -> None:
    peaks = totals({1: {"a": ("1", "10")}, 2: {"a": ("1", "20")}})
    agreeing = explain([wrong(("2", "20"), ("3", "20"))], peaks)
    assert note(agreeing[0]).startswith("too high by exactly batch")
    assert explain([wrong(("2", "20"), ("3", "25"))], peaks) == [()]
    floats = totals({1: {"a": ("1", "1.5")}, 2: {"a": ("1", "2.5")}}, families=("text", "number", "float"))
    assert explain([wrong(("2", "4.0"), ("3", "5.5"))], floats) == [()]
    assert (
        note(explain([wrong(("2", "4.0"), ("3", "4.0"))], floats)[0])
        == "too high by exactly batch 2 or too high by exactly batch 1"
    )


def test_records_without_a_batch_explain_nothing() -> None:
    assert explain([wrong(("8", "81.5"), ("10", "102"))], THREE) == [()]
    assert explain([wrong(("7", "71.5"), ("9", "92"), key="b")], THREE) == [()]


def test_findings_of_several_rows_are_not_explained() -> None:
    one = wrong(("7", "71.5"), ("9", "92"))
    assert explain([replace(one, expected=one.expected * 2)], THREE) == [()]
    assert explain([replace(one, found=one.found * 2)], THREE) == [()]


ONE = ((1, 0),)


def of(*contributions: int, key: str = "a") -> Totals:
    """One column of numbers, one number a batch."""
    made: dict[int, dict[Key, Row]] = {b: {(key,): (key, "0", str(n))} for b, n in enumerate(contributions)}
    return Totals(columns=COLUMNS, families=FAMILIES, payload=(2,), contributions=made)


def single(gap: int, whole: int) -> Finding:
    return wrong(("0", str(whole)), ("0", str(whole + gap)))


def test_every_way_is_an_option_singles_first_the_newest_batch_first() -> None:
    (options,) = explain([single(2, 17)], of(2, 3, 5, 7))
    assert options == (ONE, ((-1, 2), (1, 3)), ((-1, 1), (1, 2)))
    (options,) = explain([single(-2, 17)], of(2, 3, 5, 7))
    assert options[0] == ((-1, 0),) and len(options) == 3
    (options,) = explain([single(4, 8)], of(4, 4))
    assert options[:2] == (((1, 1),), ((1, 0),))


def test_a_batch_may_be_counted_three_times_and_not_be_missing_twice_nor_both() -> None:
    assert explain([single(14, 9)], of(7, 2)) == [(((1, 0), (1, 0)),)]
    assert explain([single(-14, 9)], of(7, 2)) == [()]
    assert explain([single(100, 9)], of(7, 2)) == [()]


def test_more_than_three_ways_are_counted() -> None:
    (options,) = explain([single(2, 10)], of(2, 2, 2, 2, 2))
    assert (
        note(options[:3]) == "too high by exactly batch 4 or too high by exactly batch 3 or too high by exactly batch 2"
    )
    assert note(options[:5]) == f"{note(options[:3])} or 2 more ways"
    assert note(()) == ""


def test_options_that_other_keys_refute_are_pushed_aside_by_those_that_they_bear_out() -> None:
    once, other = ("1", "5"), ("1", "7")
    plain: dict[str, tuple[str | None, ...]] = {"a": once, "b": once}
    alike = totals({1: plain, 2: {**plain, "c": other}, 3: {**plain, "d": other}})
    findings = [wrong(("3", "15"), ("4", "20"), key=k) for k in "ab"] + [wrong(("1", "7"), ("2", "14"), key="c")]
    one_or_two = (((1, 2),), ((1, 1),))
    assert explain(findings, alike) == [one_or_two, one_or_two, (((1, 2),),)], "3 would show in d"
    assert explain(findings[:2], alike) == [(((1, 1),),)] * 2, "2 would show in c"
    untold = replace(alike, excluded=frozenset({("c",)}))
    assert explain(findings[:2], untold) == [one_or_two] * 2, "of c nobody can tell"


def test_a_batch_that_gives_nothing_to_a_key_that_is_right_is_not_refuted_by_it() -> None:
    known = totals({1: {"a": ("5", "5"), "b": ("0", "0")}, 2: {"a": ("5", "5"), "b": ("3", "3")}})
    assert explain([wrong(("10", "10"), ("15", "15"))], known) == [(((1, 1),),)]


def test_what_is_no_sum_explains_nothing() -> None:
    means = totals({1: {"a": ("4", "2.0")}, 2: {"a": ("6", "3.0")}}, families=("text", "number", "float"))
    assert explain([wrong(("10", "2.6"), ("14", "2.4"))], means) == [()]


def cased(*families: str) -> Case:
    names = tuple("abc"[: len(families)])
    return Case(sink="t", columns=names, families=families, key=("a",), expected=[], found=[], aggregate=True)


def test_rows_are_alike_in_any_order_and_up_to_rounding() -> None:
    one, other = ("a", "1.0"), ("b", "2.0")
    near = ("a", "1.0000000000001")
    case, key = cased("text", "float"), ("a",)
    assert alike(case, key, [one, other], [other, near])
    assert not alike(cased("text", "number"), key, [one, other], [other, near])
    assert not alike(case, key, [one, one], [one, other])
    assert not alike(case, key, [one], [one, one]) and not alike(case, key, [one, one], [one])


def test_options_of_which_none_is_borne_out_are_all_kept() -> None:
    once: tuple[str | None, ...] = ("1", "5")
    alike = totals({1: {"a": once, "b": once}, 2: {"a": once, "b": once}})
    (options,) = explain([wrong(("2", "10"), ("3", "15"))], alike)
    assert {((1, 1),), ((1, 2),)} <= set(options)


def test_a_pair_is_borne_out_by_the_sum_of_both() -> None:
    two = totals({1: {"a": ("1", "5"), "b": ("1", "3")}, 2: {"a": ("2", "9"), "b": ("4", "2")}, 3: {"a": ("3", "14")}})
    findings = [wrong(("6", "28"), ("9", "42")), wrong(("5", "5"), ("10", "10"), key="b")]
    assert explain(findings, two) == [(((1, 3),), ((1, 1), (1, 2))), (((1, 1), (1, 2)),)]
    assert explain(findings[:1], two) == [(((1, 3),),)]


def test_what_is_no_sum_refutes_nothing() -> None:
    """A count and a maximum: batch 2 counted twice leaves the maximum as it was, batch 1 would show in b."""
    peaks = totals({1: {"a": ("2", "9"), "b": ("1", "4")}, 2: {"a": ("2", "7"), "c": ("1", "5")}, 3: {"c": ("1", "6")}})
    findings = [wrong(("4", "9"), ("6", "9")), wrong(("2", "6"), ("3", "6"), key="c")]
    assert explain(findings, peaks)[0] == (((1, 2),),)


def test_what_cancels_out_in_a_key_that_is_right_does_not_refute_it() -> None:
    """Of a, batch 3 gave what 1 gave beyond 2; it would show in c. In b, 1 and 2 cancel out, and no number counts for
    nothing."""
    three = totals(
        {
            1: {"a": ("5", "50"), "b": ("1", "4"), "d": ("Infinity", "0")},
            2: {"a": ("2", "20"), "b": ("1", "4"), "d": ("0", "Infinity")},
            3: {"a": ("3", "30"), "c": ("1", "1")},
        }
    )
    assert explain([wrong(("10", "100"), ("13", "130"))], three) == [(((1, 1), (-1, 2)),)]


def test_a_key_of_several_rows_refutes_nothing() -> None:
    once: tuple[str | None, ...] = ("1", "5")
    alike = totals({1: {"a": once, "b": once}, 2: {"a": once}})
    several = wrong(("1", "5"), ("2", "10"), key="b")
    several = replace(several, found=several.found * 2)
    assert explain([wrong(("2", "10"), ("3", "15")), several], alike) == [(((1, 2),), ((1, 1),)), ()]


def test_text_and_endless_numbers_bear_nothing_out_and_refute_nothing() -> None:
    columns: dict[str, object] = {"columns": ("account", "n", "who"), "families": ("text", "number", "text")}
    named = totals({1: {"a": ("1", "x")}, 2: {"a": ("2", "x")}}, **columns)
    finding = Finding(
        kind=Kind.WRONG_AGGREGATE,
        sink="s",
        key={"account": "a"},
        expected=({"account": "a", "n": "3", "who": "x"},),
        found=({"account": "a", "n": "5", "who": "x"},),
    )
    assert explain([finding], named) == [(((1, 2),), ((1, 1), (1, 1)))]
    endless = totals({1: {"a": ("1", "Infinity")}, 2: {"a": ("2", "Infinity")}})
    assert explain([wrong(("3", "Infinity"), ("5", "Infinity"))], endless) == [(((1, 2),), ((1, 1), (1, 1)))]


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15)


@given(st.lists(NUMBERS, min_size=2, max_size=8), st.data())
def test_any_batch_counted_again_or_left_out_is_named(sums: list[Decimal], data: st.DataObject) -> None:
    batch = data.draw(st.integers(0, len(sums) - 1))
    sign = data.draw(st.sampled_from([1, -1]))
    counts = [2**i for i in range(len(sums))]
    assume(sums[batch] != 0)

    def cells(n: int, total: Decimal) -> tuple[str | None, ...]:
        return str(n), str(canonical(total, "number"))

    per_batch = {i: {"a": cells(count, total)} for i, (count, total) in enumerate(zip(counts, sums, strict=True))}
    expected = cells(sum(counts), sum(sums, Decimal(0)))
    found = cells(sum(counts) + sign * counts[batch], sum(sums, Decimal(0)) + sign * sums[batch])
    (options,) = explain([wrong(expected, found)], totals(per_batch))
    assert ((sign, batch),) in options


def test_a_wrong_total_names_the_records_of_the_batches_that_explain_it() -> None:
    lineage: dict[Key, list[Origin]] = {("a",): [Origin(0, 30, 3), Origin(1, 5, 2), Origin(0, 20, 2), Origin(0, 1, 1)]}
    one = wrong(("7", "72.5"), ("9", "93"))
    (out,) = attributed([one], Clues(lineage=lineage, totals=UNLIKE))
    assert out == replace(
        one,
        records=(RecordRef(partition=0, offset=20), RecordRef(partition=1, offset=5)),
        batches=(2,),
        note="too high by exactly batch 2",
    )


def test_an_unexplained_total_names_all_that_went_into_it() -> None:
    lineage: dict[Key, list[Origin]] = {("a",): [Origin(0, 30, 3), Origin(0, 1, 1), Origin(0, 40, None)]}
    one = replace(wrong(("7", "71.5"), ("0", "0.3")), note="as before")
    (out,) = attributed([one], Clues(lineage=lineage, totals=THREE))
    assert [record.offset for record in out.records] == [1, 30, 40]
    assert (out.batches, out.faults, out.note) == ((1, 3), (), "as before")
    (bare,) = attributed([one], Clues(lineage=lineage))
    assert (bare.batches, bare.note) == ((1, 3), "as before")


def test_without_lineage_the_batches_that_gave_the_key_are_named() -> None:
    lost = Finding(kind=Kind.LOST, sink="s", key={"account": "a"}, note="gone")
    other = Finding(kind=Kind.LOST, sink="s", key={"account": "zz"})
    out = attributed([lost, other], Clues(totals=THREE))
    assert [(f.batches, f.records, f.note) for f in out] == [((1, 2, 3), (), "gone"), ((), (), "")]


def test_without_any_clue_nothing_is_named() -> None:
    lost = Finding(kind=Kind.LOST, sink="s", key={"account": "a"})
    assert attributed([lost], Clues()) == [lost]


def test_records_and_batches_come_in_order_and_bounded() -> None:
    origins = [Origin(1, offset, offset // 10) for offset in range(RECORDS_MAX + 20)][::-1]
    lost = Finding(kind=Kind.LOST, sink="s", key={"id": None})
    (out,) = attributed([lost], Clues(lineage={(None,): origins}))
    assert len(out.records) == RECORDS_MAX
    assert out.records[:2] == (RecordRef(partition=1, offset=0), RecordRef(partition=1, offset=1))
    assert out.batches == tuple(range((RECORDS_MAX + 20) // 10))


def test_several_kinds_keep_their_places() -> None:
    lost = Finding(kind=Kind.LOST, sink="s", key={"account": "a"})
    high, low = wrong(("7", "72.5"), ("9", "93")), wrong(("7", "72.5"), ("6", "62.5"))
    out = attributed([high, lost, low, lost], Clues(totals=UNLIKE))
    assert [f.note for f in out] == ["too high by exactly batch 2", "", "too low by exactly batch 1", ""]
    assert [f.kind for f in out] == [Kind.WRONG_AGGREGATE, Kind.LOST, Kind.WRONG_AGGREGATE, Kind.LOST]


def test_notes_are_joined_and_empty_ones_left_out() -> None:
    assert joined("a", "", "b") == "a; b"
    assert joined() == ""


def test_sinks_that_must_agree_name_each_other() -> None:
    def of(kind: Kind, sink: str, key: str) -> Finding:
        position = names.index(sink) if sink in names else -1
        return Finding(kind=kind, sink="cut...", key={"id": key}, note="n" if key == "1" else "", position=position)

    names = ["t", "index", "other"]
    holders: dict[int, set[Key]] = {0: {("2",), ("3",)}, 1: {("1",), ("3",)}, 2: {("2",)}}
    findings = [
        of(Kind.LOST, "t", "1"),
        of(Kind.LOST, "index", "2"),
        of(Kind.LOST, "t", "9"),
        of(Kind.UNEXPECTED, "t", "3"),
        of(Kind.DUPLICATED, "t", "1"),
        of(Kind.LOST, "nowhere", "2"),
        of(Kind.LOST, "other", "3"),
    ]
    assert [f.note for f in together(findings, holders, names=names)] == [
        "n; index holds this key",
        "t holds this key; other holds this key",
        "",
        "other lacks this key",
        "n",
        "",
        "t holds this key; index holds this key",
    ]
    torn = [True, True, False, True, False, False, True]
    assert [f.torn for f in together(findings, holders, names=names)] == torn
    assert [replace(f, note="", torn=False) for f in together(findings, holders, names=names)] == [
        replace(f, note="") for f in findings
    ]


@pytest.mark.parametrize(
    ("expected", "found", "rounding"),
    [
        ("0.3", "0.30000000000000004", True),
        ("0.3", "0.3001", False),
        ("1000000000.0", "1000000000.5", True),
        ("1000000000.0", "1000000002.0", False),
        ("0.3", None, False),
        (None, "0.3", False),
        ("nan", "0.3", False),
    ],
)
def test_float_totals_may_differ_by_rounding_only(expected: str | None, found: str | None, rounding: bool) -> None:
    mark = Mark(Kind.WRONG_AGGREGATE, ("a",), [("a", "1", expected)], [("a", "1", found)])
    case = cased("text", "number", "float")
    assert only_rounding(mark, case) is rounding
    assert only_rounding(mark, cased("text", "number", "number")) is False
    assert only_rounding(mark._replace(kind=Kind.CORRUPTED), case) is False
    other: list[Row] = [("a", "2", found)]
    assert only_rounding(mark._replace(found=other), case) is False


@pytest.mark.parametrize(("size", "rounding"), [(0.0, False), (1e-9, False), (1.0, True), (0.9, True), (0.1, False)])
def test_a_total_near_zero_rounds_by_a_part_of_what_went_into_it(size: float, rounding: bool) -> None:
    mark = Mark(Kind.WRONG_AGGREGATE, ("a",), [("a", "1", "0.0")], [("a", "1", "9e-10")])
    case = replace(cased("text", "number", "float"), sizes={("a",): [0.0, 0.0, size], ("b",): [9.0, 9.0, 9.0]})
    assert only_rounding(mark, case) is rounding
