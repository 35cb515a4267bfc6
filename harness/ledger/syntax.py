"""What DuckDB's syntax tree of `expected` says of it, before any record is asked. Pure."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

Node = dict[str, Any]
Tree = dict[str, Any]

COUNTS = ("count", "count_star", "count_if")
CLOCK_WORDS = ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")
OF_ENGINE = ("", "main", "pg_catalog")
"""The schemas of DuckDB's functions; another word before a function is what it is asked of: `at.age()`."""
SUMS = ("sum", "avg", "mean", "fsum", "favg", "sumkahan", "kahan_sum")
"""Aggregates of numbers; of the first one, what each record gives to it is the number itself."""
PICKS = (*COUNTS, "min", "max", "first", "last", "any_value", "arbitrary", "mode",
         "arg_min", "arg_max", "argmin", "argmax", "min_by", "max_by")  # fmt: skip
"""Aggregates that count, or give what one record has, and add nothing up."""


def folded(tree: Tree, aggregates: Collection[str]) -> bool:
    """Return whether it folds several records into one row: grouping, aggregate function, DISTINCT, or a window."""
    return any(_folds(node, aggregates) for node in _nodes(tree))


def plain(tree: Tree, aggregates: Collection[str]) -> bool:
    """Return whether each record by itself gives its rows, whatever the others are. Then more records only add rows."""
    return _straight(tree) and not _cut(tree) and not folded(tree, aggregates)


def distinct(tree: Tree, aggregates: Collection[str]) -> bool:
    """Return whether each row is what one record gives by itself, there once by DISTINCT alone."""
    others = [node for node in _nodes(tree) if node.get("type") != "DISTINCT_MODIFIER"]
    once = _straight(tree) and not _cut(tree, "DISTINCT_MODIFIER")
    return once and folded(tree, aggregates) and not any(_folds(node, aggregates) for node in others)


def keyed(
    tree: Tree, names: Sequence[str], key: Collection[str], aggregates: Collection[str], columns: Collection[str]
) -> bool:
    """Return whether a key is there if any of its records is, whatever the others are, and however often. True of rows
    record by record, of DISTINCT, and of a plain GROUP BY whose key is no aggregate. `names` are those of the query's
    columns, `columns` those of its table; no `key` means all."""
    node = _select(tree)
    if not _straight(tree) or _cut(tree, "DISTINCT_MODIFIER") or node.get("having"):
        return False
    # A QUALIFY has windows too.
    windows = any(part.get("class") == "WINDOW" for part in _nodes(tree))
    aggregated = _on_aggregates(node["select_list"], aggregates, columns)
    by_name = dict(zip(names, node["select_list"], strict=False))
    named = bool(key) and not _wild(tree) and not any(by_name[name] in aggregated for name in key if name in by_name)
    return not windows and len(node["group_sets"]) <= 1 and (named or not aggregated)


def _on_aggregates(items: Sequence[Node], aggregates: Collection[str], columns: Collection[str]) -> list[Node]:
    """Return the columns that hang on an aggregate, by themselves or by the name of another one; a column of the table
    goes before such a name."""
    out = [item for item in items if folded(item, aggregates)]
    while more := [item for item in items if item not in out and named(item) & _aliases(out) - _lower(columns)]:
        out += more
    return out


def _aliases(items: Sequence[Node]) -> set[str]:
    return _lower(str(item.get("alias") or "") for item in items) - {""}


def named(item: Node) -> set[str]:
    """Return the columns that it refers to."""
    return _lower(part["column_names"][-1] for part in _nodes(item) if part.get("class") == "COLUMN_REF")


def _lower(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}


def growing(tree: Tree) -> dict[int, bool]:
    """Return the places of the columns to which each record adds a value; true if that value is never negative."""
    if _wild(tree):
        return {}
    found = ((place, _aggregate(item)) for place, item in enumerate(_select(tree).get("select_list", ())))
    known = {place: node for place, node in found if node is not None and not node["distinct"]}
    kinds = {place: node["function_name"].lower() for place, node in known.items()}
    return {place: kind in COUNTS for place, kind in kinds.items() if kind in COUNTS or kind == SUMS[0]}


def summed(tree: Tree) -> tuple[int, ...]:
    """Return the places of the columns that are a sum or an average of numbers, and nothing else."""
    if _wild(tree):
        return ()
    found = enumerate(map(_aggregate, _select(tree).get("select_list", ())))
    return tuple(place for place, node in found if node is not None and node["function_name"].lower() in SUMS)


def unrounded(tree: Tree, aggregates: Collection[str], columns: Collection[str]) -> frozenset[int]:
    """Return the places of the columns for which nothing is added up, so that no order of the records rounds them:
    their cells are what one record has. `columns` are those of its table."""
    if _wild(tree) or not _straight(tree):
        return frozenset()
    items = _select(tree)["select_list"]
    added = _on_aggregates(items, {*aggregates} - {*PICKS}, columns)
    return frozenset(place for place, item in enumerate(items) if item not in added)


def instead(tree: Tree, function: str) -> Tree:
    """Return the same query with `function` of the numbers in the place of what it makes of them in each of its
    columns."""
    out = copy.deepcopy(tree)
    items = _select(out).get("select_list", [])
    for place, item in enumerate(items):
        node = _aggregate(item)
        if node is not None and node["function_name"].lower() in SUMS:
            # Without its casts: what went in may be of another family than what comes of it.
            named = {"function_name": function, "qualified_name": {"path": [function]}, "alias": item["alias"]}
            items[place] = node | named
    return out


def unsteady(tree: Tree, columns: Collection[str], functions: Collection[str]) -> str:
    """Return what it asks that the records do not tell, such as the clock; empty if nothing. `columns` are those of its
    table, `functions` those that answer otherwise each time."""
    nodes = list(_nodes(tree))
    if any(isinstance(node.get("sample"), dict) for node in nodes):
        return "for a sample"
    if any(_to_now(node) for node in nodes):
        return "age with one argument"
    # Some are written without brackets, and are columns where there is one of that name.
    bare = [node["column_names"] for node in nodes if node.get("class") == "COLUMN_REF"]
    clocks = _lower(names[0] for names in bare if len(names) == 1) & set(CLOCK_WORDS) - _lower(columns)
    return min((_called(nodes) & {*functions}) | (clocks - _own(nodes)), default="")


def _to_now(node: Node) -> bool:
    """Return whether it is an age until today."""
    if node.get("class") != "FUNCTION" or str(node.get("function_name")).lower() != "age":
        return False
    given = node.get("arguments") or node.get("children") or ()
    return len(given) + (str(node["schema"]).lower() not in OF_ENGINE) == 1


def several(tree: Tree, functions: Collection[str]) -> str:
    """Return the function of `functions`, which give several rows, that it calls for each of its rows; empty if
    none."""
    return min(_called(_nodes(tree, but="SUBQUERY")) & {*functions}, default="")


def _called(nodes: Iterable[Node]) -> set[str]:
    return _lower(str(node.get("function_name", "")) for node in nodes if node.get("class") == "FUNCTION")


def _own(nodes: Iterable[Node]) -> set[str]:
    """Return the names that it gives to columns; not one that it gives to what it calls so already."""
    out: set[str] = set()
    for node in nodes:
        if isinstance(alias := node.get("alias"), str) and alias:
            out |= {alias.lower()} - named(node)
        listed = (*node.get("aliases", ()), *node.get("column_name_alias", ()))
        out |= _lower(each for each in listed if isinstance(each, str))
    return out


def _select(tree: Tree) -> Node:
    node: Node = tree["statements"][0]["node"]
    return node


def _straight(tree: Tree) -> bool:
    """One SELECT straight from one table, all of it."""
    node = _select(tree)
    alone = node["type"] == "SELECT_NODE" and (node.get("from_table") or {}).get("type") == "BASE_TABLE"
    nested = any(part.get("class") == "SUBQUERY" for part in _nodes(tree))
    return alone and not (nested or node["cte_map"]["map"] or node.get("sample"))


def _cut(tree: Tree, *but: str) -> bool:
    """Return whether it leaves rows out by their number or likeness: LIMIT, DISTINCT ON."""
    modifiers = _select(tree).get("modifiers") or ()
    return any(m.get("type") not in ("ORDER_MODIFIER", *but) or m.get("distinct_on_targets") for m in modifiers)


def _wild(tree: Tree) -> bool:
    """Return whether an item may stand for several columns."""
    nodes = list(_nodes(_select(tree).get("select_list", ())))
    return any(part.get("class") == "STAR" or part.get("function_name") == "unnest" for part in nodes)


def _aggregate(item: Node) -> Node | None:
    """Return the function that a column is, once casts and a zero in the place of NULL are taken off."""
    while item.get("class") != "FUNCTION":
        if item.get("class") == "CAST":
            item = item["child"]
        elif item.get("type") == "OPERATOR_COALESCE" and all(map(_zero, item["children"][1:])):
            item = item["children"][0]
        else:
            return None
    return item


def _zero(item: Node) -> bool:
    # A constant is a `literal` with its text, or in DuckDB 1 a `value` with its value.
    constant = item.get("literal") or item.get("value") or {}
    try:
        return Decimal(str(constant.get("text", constant.get("value")))) == 0
    except InvalidOperation:
        return False


def _nodes(tree: object, *, but: str = "") -> Iterator[Node]:
    """Yield every node, without the expressions of the class `but`, and what is in them."""
    todo: list[object] = [tree]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            if but and part.get("class") == but:
                continue
            yield part
            todo += part.values()
        elif isinstance(part, Sequence) and not isinstance(part, str):
            todo += part


def _folds(node: Node, aggregates: Collection[str]) -> bool:
    if node.get("class") == "WINDOW" or node.get("type") == "DISTINCT_MODIFIER" or node.get("group_sets"):
        return True
    if node.get("type") == "SET_OPERATION_NODE":
        return not node.get("setop_all", False)
    return node.get("class") == "FUNCTION" and str(node.get("function_name", "")).lower() in aggregates
