"""Every kind of mistake in a scenario file or a header block, with its exact place and words."""

# The words of a mistake stand here as the user reads them, on one line.
# ruff: noqa: E501

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from harness.errors import ScenarioError
from harness.fields.values import A_PLACE
from harness.load import load
from tests.limits import PROCESS_S
from tests.strategies import ENTRY, project

PIPELINE = "name: n\npipeline: pipelines/pay.py\n"
GOOD = PIPELINE + "sink: {postgres: t, expected: select id from ledger, key: [id]}\n"

CLOSING = PIPELINE + "sink: {postgres: t, expected: select id from ledger, key: [id], watermark: "


class Case(NamedTuple):
    """A file and what is said of it, as `line:col: text`; ROOT stands for the project's folder."""

    name: str
    text: str
    said: list[str]


CASES = [
    Case("empty", "", ["1:1: the file is empty: `onceproof new NAME` writes one that works"]),
    Case("only a comment", "# nothing\n", ["1:1: the file is empty: `onceproof new NAME` writes one that works"]),
    Case("no mapping", "- a\n", ["1:1: the top level must be a mapping, not a list"]),
    Case("not YAML", "name: [n\n", ["2:1: not YAML: expected ',' or ']', but got '<stream end>'"]),
    Case(
        "block that grows",
        "why: >-\n \n  a\n",
        ["3:3: not YAML: more indented follow up line than first in a block scalar"],
    ),
    Case("tab", ("name: n\n\twhy: w\n"), ["2:1: not YAML: found character '\\t' that cannot start any token"]),
    Case("control character", ("name: n\nwhy: a\x07b\n"), ["2:7: not YAML: character U+0007"]),
    Case("two documents", GOOD + ("---\nname: m\n"), ["4:1: a second document begins here: a file holds one"]),
    Case("duplicate key", GOOD + "name: m\n", ["4:1: key 'name' stands here again; it was first on line 1"]),
    Case("key that is a list", GOOD + ("? [a]\n: b\n"), ["4:3: a key must be a text"]),
    Case("key that is nothing", GOOD + ": b\n", ["4:1: a key must be a text"]),
    Case("tag", GOOD + "why: !!str w\n", ["4:6: tag tag:yaml.org,2002:str is not allowed: each key knows its type"]),
    Case(
        "anchor and alias",
        GOOD + ("why: &w w\ntags: [*w]\n"),
        ["4:6: anchor &w is not allowed: write the value out", "5:8: alias *w is not allowed: write the value out"],
    ),
    Case(
        "an alias that is there often is one mistake",
        GOOD + ("tags: [*w, *w, *v, *w]\n"),
        ["4:8: alias *w is not allowed: write the value out", "4:16: alias *v is not allowed: write the value out"],
    ),
    Case("NUL", GOOD + 'why: "a\\0b"\n', ["4:6: a NUL or half a surrogate pair is not allowed in a text"]),
    Case(
        "half a surrogate pair",
        GOOD + 'why: "a\\ud800b"\n',
        ["4:6: a NUL or half a surrogate pair is not allowed in a text"],
    ),
    Case(
        "unknown keys",
        GOOD + ("guarante: exactly-once\nzzz: 1\n"),
        ["4:1: unknown key 'guarante'; did you mean 'guarantee'?", "5:1: unknown key 'zzz'"],
    ),
    Case(
        "unknown keys inside",
        PIPELINE + ("sink: {postgres: t, expected: select id from ledger, key: [id], efect: x}\ninput: {record: 5}\n"),
        [
            "3:65: unknown key 'sink.efect'; did you mean 'expected'?",
            "4:9: unknown key 'input.record'; did you mean 'records'?",
        ],
    ),
    Case(
        "missing keys",
        "why: w\n",
        [
            "1:1: name is missing",
            "1:1: pipeline is missing",
            "1:1: sink is missing: name one here, or in the header block of the pipeline",
        ],
    ),
    Case(
        "value that is nothing",
        GOOD + ("why:\ntimeout: ~\n"),
        [
            "4:1: why must be a text, not nothing",
            "5:10: timeout must be a duration such as 250ms, 3s or 2m, not nothing",
        ],
    ),
    Case(
        "wrong whole numbers",
        GOOD + ("seed: -1\ninput: {records: many, keys: 1e3, partitions: 0}\n"),
        [
            "4:7: seed must be a whole number from 0 to 9223372036854775807, not '-1'",
            "5:18: input.records must be a whole number from 1 to 10000000, not 'many'",
            "5:30: input.keys must be a whole number from 1 to 10000000, not '1e3'",
            "5:47: input.partitions must be a whole number from 1 to 1000, not '0'",
        ],
    ),
    Case("wrong number", GOOD + "input: {skew: -1}\n", ["4:15: input.skew must be a number from 0 to 10, not '-1'"]),
    Case(
        "wrong durations",
        PIPELINE.replace("pipelines/pay.py", "{entry: pipelines/pay.py, interval: 120}")
        + GOOD.removeprefix(PIPELINE)
        + ("timeout: 3\nquiet_period: 0s\nrestart: {after: soon, max_restarts: 3}\n"),
        [
            "2:47: pipeline.interval must be a duration such as 250ms, 3s or 2m, not '120': the unit is missing",
            "4:10: timeout must be a duration such as 250ms, 3s or 2m, not '3': the unit is missing",
            "5:15: quiet_period must be more than no time, not '0s'",
            "6:18: restart.after must be a duration such as 250ms, 3s or 2m, not 'soon'",
        ],
    ),
    Case("too long a duration", GOOD + "timeout: 999h\n", ["4:10: timeout must be at most 168h, not '999h'"]),
    Case(
        "rate too slow",
        GOOD + "timeout: 100s\ninput: {rate: 10/s, records: 1000}\n",
        ["5:15: input.rate is too slow: 1000 records take 100s, and the run ends within 100s"],
    ),
    Case("wrong rate", GOOD + "input: {rate: 200}\n", ["4:15: input.rate must be a rate such as 200/s, not '200'"]),
    Case(
        "rate of nothing", GOOD + "input: {rate: 0/s}\n", ["4:15: input.rate must be a rate such as 200/s, not '0/s'"]
    ),
    Case(
        "wrong words",
        GOOD + ("guarantee: exactly once\nverdict: hold\n"),
        [
            "4:12: guarantee must be one of exactly-once, at-least-once, at-most-once, not 'exactly once'; did you mean 'exactly-once'?",
            "5:10: verdict must be one of held, inconclusive, untested, {violated: [KIND]}, not 'hold'; did you mean 'held'?",
        ],
    ),
    Case(
        "a word of before",
        GOOD + "verdict: void\n",
        [
            "4:10: verdict must be one of held, inconclusive, untested, {violated: [KIND]}, not 'void'; it is called 'untested' now"
        ],
    ),
    Case("wrong flag", GOOD + "together: yes\n", ["4:11: together must be true or false, not 'yes'"]),
    Case(
        "wrong tags",
        GOOD + "tags: [ok, Not OK]\n",
        ["4:12: tags[1] must be a tag of small letters, digits and '_', not 'Not OK'"],
    ),
    Case("text for a list", GOOD + "tags: chaos\n", ["4:7: tags must be a list, not 'chaos'"]),
    Case("list for a text", GOOD + "why: [w]\n", ["4:6: why must be a text, not a list"]),
    Case(
        "list for a mapping",
        GOOD + ("input: [a]\nrestart: now\n"),
        ["4:8: input must be a mapping, not a list", "5:10: restart must be a mapping, not 'now'"],
    ),
    Case(
        "long value",
        GOOD + "guarantee: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
        [
            "4:12: guarantee must be one of exactly-once, at-least-once, at-most-once, not 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'"
        ],
    ),
    Case(
        "wrong name",
        ('name: "a\\nb"\npipeline: pipelines/pay.py\nsink: {console: true}\n'),
        ["1:7: name must be one line of 1 to 200 printable characters, not 'a\\nb'"],
    ),
    Case(
        "missing pipeline",
        ("name: n\npipeline: pipelines/nope.py\nsink: {console: true}\n"),
        ["2:11: pipeline names 'pipelines/nope.py', and there is no such file in ROOT"],
    ),
    Case(
        "missing pipeline, whose header may say the rest",
        "name: n\n"
        "pipeline: {entry: pipelines/nope.py, progress_in: postgres}\n"
        "guarantee: at-most-once\n"
        "verdict: {violated: [lost]}\n"
        "schedule: [{when: {point: batch-checkpointed, batch: 900}, do: kill driver}]\n",
        ["2:19: pipeline names 'pipelines/nope.py', and there is no such file in ROOT"],
    ),
    Case(
        "pipeline is a folder",
        ("name: n\npipeline: {entry: pipelines}\nsink: {console: true}\n"),
        ["2:19: pipeline names 'pipelines', and that is a folder"],
    ),
    Case(
        "pipeline outside",
        ("name: n\npipeline: ../../../../../../../../../etc/hosts\nsink: {console: true}\n"),
        ["2:11: pipeline '../../../../../../../../../etc/hosts' leads out of ROOT: name its absolute path"],
    ),
    Case(
        "pipeline's name too long",
        (
            "name: n\n"
            "pipeline: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n"
            "sink: {console: true}\n"
        ),
        [
            "2:11: pipeline names 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', which cannot be read: File name too long"
        ],
    ),
    Case(
        "unknown placeholder",
        (
            "name: n\n"
            "pipeline: {entry: pipelines/pay.py, args: ['{kafka.bootstrp}', '{'], env: {A: '}', B: '{\"a\": 1}'}}\n"
            "sink: {console: true}\n"
            "setup: {postgres: '{x}'}\n"
        ),
        [
            "2:44: pipeline.args[0] holds the unknown placeholder '{kafka.bootstrp}'; did you mean 'kafka.bootstrap'?",
            "2:64: pipeline.args[1] holds a single '{': write '{{' for the character itself",
            "2:79: pipeline.env.A holds a single '}': write '}}' for the character itself",
            "2:87: pipeline.env.B holds the unknown placeholder '{\"a\": 1}': braces that are meant as such are doubled, '{{\"a\": 1}}'",
            "4:19: setup.postgres holds the unknown placeholder '{x}'",
        ],
    ),
    Case(
        "wrong names in env and conf",
        ("name: n\npipeline: {entry: pipelines/pay.py, env: {A-B: x}, conf: {sql.x: 1}}\nsink: {console: true}\n"),
        [
            "2:43: pipeline.env: the key must be the name of an environment variable, not 'A-B'",
            "2:59: pipeline.conf: the key must be a Spark setting that begins with 'spark.', not 'sql.x'",
        ],
    ),
    Case(
        "wrong list inside",
        (
            "name: n\n"
            "pipeline: {entry: pipelines/pay.py, args: [a, [b]], env: [x], executors: 65}\n"
            "sink: {console: true}\n"
        ),
        [
            "2:47: pipeline.args[1] must be a text, not a list",
            "2:58: pipeline.env must be a mapping, not a list",
            "2:74: pipeline.executors must be a whole number from 1 to 64, not '65'",
        ],
    ),
    Case(
        "wrong progress",
        ("name: n\npipeline: {entry: pipelines/pay.py, progress: checkpiont}\nsink: {console: true}\n"),
        [
            "2:47: pipeline.progress must be checkpoint, async, dstreams, group or a query (select, with) for the next offsets, not 'checkpiont'; did you mean 'checkpoint'?"
        ],
    ),
    Case(
        "progress that is a list",
        ("name: n\npipeline: {entry: pipelines/pay.py, progress: []}\nsink: {console: true}\n"),
        [
            "2:47: pipeline.progress must be checkpoint, async, dstreams, group or a query (select, with) for the next offsets, not a list"
        ],
    ),
    Case(
        "a query put to a component that answers none",
        "name: n\npipeline:\n  entry: pipelines/pay.py\n  progress: select 1, 2\n  progress_in: kafka\nsink: {console: true}\n",
        [
            "5:16: pipeline.progress_in must be one of mariadb, postgres, or such a one with a name after a dot, not 'kafka'"
        ],
    ),
    Case(
        "a component for a query that is not there",
        "name: n\npipeline: {entry: pipelines/pay.py, progress: group, progress_in: postgres}\nsink: {console: true}\n",
        ["2:67: pipeline.progress_in is for a query under progress, and there is none"],
    ),
    Case("no sink", PIPELINE, ["1:1: sink is missing: name one here, or in the header block of the pipeline"]),
    Case("empty list of sinks", PIPELINE + "sink: []\n", ["3:7: sink names none: there is nothing to compare"]),
    Case("sinks that are a text", PIPELINE + "sink: payments\n", ["3:7: sink must be a list, not 'payments'"]),
    Case("sink that is a text", PIPELINE + "sink: [payments]\n", ["3:8: sink[0] must be a mapping, not 'payments'"]),
    Case(
        "sink without a place",
        PIPELINE + "sink: {part: second}\n",
        [
            "3:7: sink names no place: add one of azure, console, delta, eventhubs, files, hdfs, iceberg, kafka, mariadb, opensearch, postgres, python, s3"
        ],
    ),
    Case(
        "sink in a place with a slip in its name is one mistake",
        PIPELINE + "sink: {postgress: t, expected: select id from ledger, key: [id]}\n",
        ["3:8: unknown key 'sink.postgress'; did you mean 'postgres'?"],
    ),
    Case(
        "sink without a place, and another key with a slip in its name",
        PIPELINE + "sink: {efect: select id from ledger, key: [id]}\n",
        [
            "3:7: sink names no place: add one of azure, console, delta, eventhubs, files, hdfs, iceberg, kafka, mariadb, opensearch, postgres, python, s3",
            "3:8: unknown key 'sink.efect'; did you mean 'expected'?",
        ],
    ),
    Case(
        "sink with two places",
        PIPELINE + "sink: {postgres: t, console: true, expected: select id from ledger, key: [id]}\n",
        ["3:30: sink holds postgres and console: make it two sinks"],
    ),
    Case(
        "console with more",
        PIPELINE + "sink: {console: true, key: [id], expected: select 1}\n",
        [
            "3:28: sink.key means nothing for a console, which cannot be read back",
            "3:44: sink.expected means nothing for a console, which cannot be read back",
        ],
    ),
    Case("console: false", PIPELINE + "sink: {console: false}\n", ["3:17: sink.console is true, or not there"]),
    Case(
        "tables of other names",
        PIPELINE
        + "sink:\n"
        + "  - {postgres: order items, expected: select id from ledger, key: [id]}\n"
        + """  - {postgres: '"Sales".Orders', expected: select id from ledger, key: [id]}\n"""
        + "  - {mariadb: Orders, expected: select id from ledger, key: [id]}\n"
        + "  - {mariadb: selct id from t, expected: select id from ledger, key: [id]}\n",
        [
            f"4:16: sink[0].postgres must be {A_PLACE}, not 'order items': read it by a query: select * from \"order items\"",
            f'5:16: sink[1].postgres must be {A_PLACE}, not \'"Sales".Orders\': made without quotes it is sales.orders; made with them, read it by a query: select * from "Sales"."Orders", and add `view: deduplicated`: with a schema in it, no query is tried',
            f"6:15: sink[2].mariadb must be {A_PLACE}, not 'Orders': read it by a query: select * from `Orders`, and add `view: deduplicated`, since what a query folds is not tried here",
            f"7:15: sink[3].mariadb must be {A_PLACE}, not 'selct id from t'",
        ],
    ),
    Case(
        "table by a hostile name",
        PIPELINE + 'sink: {postgres: "t; drop table x", expected: select id from ledger, key: [id]}\n',
        [
            "3:18: sink.postgres must be a table (small letters, digits, '_', its schema before a dot) or a query (select, with), not 't; drop table x'"
        ],
    ),
    Case(
        "sink without expected rows and key",
        PIPELINE + "sink: {postgres: t}\n",
        [
            "3:7: sink.expected is missing: the SQL over `ledger` that gives the rows it should hold",
            "3:7: sink.key is missing: the columns that name a row",
        ],
    ),
    Case(
        "`expected` over nothing",
        PIPELINE + "sink: {postgres: t, expected: select 1 as id, key: [id]}\n",
        ["3:31: sink.expected reads no `ledger`: then no record could be missed"],
    ),
    Case(
        "empty key",
        PIPELINE + "sink: {postgres: t, expected: select id from ledger, key: []}\n",
        [
            "3:59: sink.key is missing: the columns that name a row, and a single row has none: add one to both (`select 1 as one, ...`)"
        ],
    ),
    Case(
        "key that `expected` lacks",
        PIPELINE + "sink: {postgres: t, expected: select identity from ledger, key: [id]}\n",
        ["3:66: sink.key 'id' is no column of `expected`"],
    ),
    Case(
        "key that the query lacks",
        PIPELINE + "sink: {postgres: select x from t, expected: select * from ledger, key: [id]}\n",
        ["3:73: sink.key 'id' is no column of the query"],
    ),
    Case(
        "key twice",
        PIPELINE + "sink: {postgres: t, expected: select id from ledger, key: [id, id]}\n",
        ["3:64: sink.key names 'id' twice"],
    ),
    Case(
        "order by a column that is not there",
        PIPELINE
        + "sink: {postgres: select id from t, expected: select id from ledger, key: [id], order: {by: at, follows: seq, per: [id]}}\n",
        ["3:92: sink.order.by 'at' is no column of the query"],
    ),
    Case(
        "order half said",
        PIPELINE + "sink: {postgres: t, expected: select id from ledger, key: [id], order: {by: at}}\n",
        ["3:72: sink.order.follows is missing", "3:72: sink.order.per is missing"],
    ),
    Case(
        "`expected` that is no query",
        PIPELINE + "sink: {postgres: t, expected: drop table ledger, key: [id]}\n",
        ["3:31: sink.expected must be a query (select, with, from, table or values), not 'drop table ledger'"],
    ),
    Case(
        "view of a table of a kind that has no views",
        PIPELINE + "sink: {delta: t, expected: select id from ledger, key: [id], view: deduplicated}\n",
        ["3:68: sink.view means nothing for a table: only a query, or a view, can fold rows that are equal"],
    ),
    Case(
        "key that a count's `expected` lacks",
        PIPELINE + "sink: {postgres: t, expected: 'select id, count(*) as n from ledger group by id', key: [ids]}\n",
        ["3:89: sink.key 'ids' is no column of `expected`"],
    ),
    Case(
        "a query that is said to give every row",
        PIPELINE + "sink: {postgres: select id from t, expected: select id from ledger, key: [id], view: complete}\n",
        ["3:86: sink.view: complete means nothing for postgres: only own code is believed"],
    ),
    Case(
        "view of a topic",
        PIPELINE + "sink: {kafka: t, expected: select key from ledger, key: [key], view: deduplicated}\n",
        ["3:70: sink.view means nothing for a sink that drops no rows"],
    ),
    Case(
        "a topic that is read without repetitions, unsaid",
        PIPELINE + "sink: {kafka: t, drop_duplicates: key, expected: select key from ledger, key: [key]}\n",
        ["3:7: sink drops rows that repeat others, so say so: add `view: deduplicated`"],
    ),
    Case(
        "a topic without the columns that identify a record",
        PIPELINE
        + "sink: {kafka: t, drop_duplicates: origin, view: deduplicated, expected: select key from ledger, key: [key]}\n",
        ["3:35: sink.drop_duplicates names no column origin: there are key, value"],
    ),
    Case(
        "a topic with another part",
        PIPELINE + "sink: {kafka: t, part: second, expected: select key from ledger, key: [key]}\n",
        ["3:24: sink.part means nothing for kafka, whose own name is the part"],
    ),
    Case(
        "a topic with a column of no type",
        PIPELINE + "sink: {kafka: t, columns: id, expected: select id from ledger, key: [id]}\n",
        [
            "3:27: sink.columns must be columns such as `id bigint, amount decimal(12,2), origin string of header origin`: "
            "'id' is no column: write NAME TYPE, or NAME TYPE of header NAME"
        ],
    ),
    Case(
        "a topic with a column of a nested type",
        PIPELINE
        + "sink: {kafka: t, columns: 'id bigint, total map<string,array<int>>', expected: select id from ledger, key: [id]}\n",
        [
            "3:27: sink.columns must be columns such as `id bigint, amount decimal(12,2), origin string of header origin`: "
            "total has the unknown type map<string,array<int>>: there are tinyint, smallint, int, bigint, decimal, float, double, boolean, string, binary, date, timestamp, timestamp_ntz"
        ],
    ),
    Case(
        "rows of a topic",
        PIPELINE
        + "sink: {kafka: t, expected: select key from ledger, key: [key]}\n"
        + "schedule: [{when: {rows: 5}, do: kill driver}]\n",
        [
            "4:26: schedule[0].when.rows cannot be counted: no sink counts its rows; name a table of the run's own in a sink that counts rows, or take a failpoint"
        ],
    ),
    Case(
        "view by another word",
        PIPELINE
        + "sink: {postgres: select id from t, expected: select id from ledger, key: [id], view: deduplicate}\n",
        ["3:86: sink.view must be one of deduplicated, complete, not 'deduplicate'; did you mean 'deduplicated'?"],
    ),
    Case(
        "view and query of a console",
        PIPELINE + "sink: {console: true, query: a, view: deduplicated}\n",
        [
            "3:30: sink.query means nothing for a console, which cannot be read back",
            "3:39: sink.view means nothing for a console, which cannot be read back",
        ],
    ),
    Case(
        "query that is no folder's name",
        PIPELINE + "sink: {postgres: t, expected: select id from ledger, key: [id], query: ../b}\n",
        ["3:72: sink.query must be the name of a checkpoint's folder, not '../b'"],
    ),
    Case(
        "a watermark's delay",
        CLOSING + "{of: event_time, closes: event_time, delay: 10 secs}}\n",
        ["3:120: sink.watermark.delay must be a duration such as 250ms, 3s or 2m, not '10 secs'"],
    ),
    Case(
        "a watermark without an end, and an unknown key",
        CLOSING + "{of: event_time, close: event_time}}\n",
        ["3:76: sink.watermark.closes is missing", "3:93: unknown key 'sink.watermark.close'; did you mean 'closes'?"],
    ),
    Case(
        "a watermark of no column, and an end that is no time",
        CLOSING + "{of: even_time, closes: amount}}\n",
        [
            '3:81: sink.watermark.of is no expression that DuckDB can run: Binder Error: Referenced column "even_time" not found in FROM clause! Candidate bindings: "event_time", "_partition", "value", "amount", "_timestamp_ms"',
            "3:100: sink.watermark.closes is no time, but DECIMAL(18,2)",
        ],
    ),
    Case(
        "a watermark of which `expected` leaves nothing out",
        CLOSING + "{of: event_time, closes: event_time, mode: update}}\n",
        [
            "3:31: sink.expected does not ask for `_late`, and counts records that Spark leaves out: say "
            "`where not (_late)`"
        ],
    ),
    Case(
        "a watermark in a mode in which Spark drops nothing",
        CLOSING + "{of: event_time, closes: event_time, mode: complete}}\n",
        ["3:119: sink.watermark.mode must be one of append, update, not 'complete'"],
    ),
    Case(
        "a watermark without batches",
        "name: n\npipeline: {entry: pipelines/pay.py, progress: group}\n"
        + CLOSING.removeprefix(PIPELINE)
        + "{of: event_time, closes: event_time}}\n",
        ["3:76: sink.watermark needs progress: checkpoint, whose batches tell when a window was written"],
    ),
    Case(
        "set-ups that are none",
        GOOD
        + "setup:\n  mariadb: 5\n  postgres: ''\n  opensearch: |\n    payments:\n      mappings: {{properties: [}}\n",
        [
            "5:12: setup.mariadb must be SQL, not '5'",
            "6:13: setup.postgres must be SQL, not ''",
            "7:15: setup.opensearch must be YAML: the name of each index, and below it what it is made with: settings, mappings; saw expected the node content, but found '}' in its line 2",
        ],
    ),
    Case(
        "indexes that are a list",
        GOOD + "setup: {opensearch: '- payments'}\n",
        [
            "4:21: setup.opensearch must be YAML: the name of each index, and below it what it is made with: settings, mappings; saw a list"
        ],
    ),
    Case(
        "an index that is made with a word",
        GOOD + "setup: {opensearch: 'payments: three'}\n",
        [
            "4:21: setup.opensearch must be YAML: the name of each index, and below it what it is made with: settings, mappings; saw no mapping below payments"
        ],
    ),
    Case(
        "a part that nothing else names",
        PIPELINE
        + "sink: {postgres: t, part: second, expected: select id from ledger, key: [id]}\n"
        + "setup: {postgres.secnd: create table t (id bigint), mariadb.other: create table t (id bigint)}\n",
        [
            "4:25: setup.postgres.secnd prepares a part that neither a sink nor a placeholder names; did you mean 'postgres.second'?",
            "4:68: setup.mariadb.other prepares a part that neither a sink nor a placeholder names; leave it out",
        ],
    ),
    Case(
        "parts that a sink, a placeholder, a query or another set-up names",
        "name: n\n"
        "pipeline: {entry: pipelines/pay.py, progress: 'select 1, 2', progress_in: postgres.c, env: {A: '{postgres.b.dsn}'}}\n"
        "sink: {postgres: t, part: a, expected: select id from ledger, key: [id]}\n"
        "setup:\n  postgres: create table t (id bigint)\n  postgres.a: create table t (id bigint)\n"
        "  postgres.b: create table t (id bigint)\n  postgres.c: create table t (id bigint)\n"
        "  mariadb.d: create table t (id bigint)\n  mariadb: create table u as select * from {mariadb.d.database}.t\n"
        "  opensearch: 'a{opensearch.prefix}:'\n",
        [],
    ),
    Case(
        "the only part that a query can be put to",
        "name: n\n"
        "pipeline: {entry: pipelines/pay.py, progress: 'select 1, 2'}\n"
        "sink: {console: true}\n"
        "setup: {mariadb.d: create table t (id bigint)}\n",
        [],
    ),
    Case(
        "servers that nobody is connected to",
        PIPELINE
        + "sink: {console: true}\n"
        + "input: {source: files}\n"
        + "schedule:\n"
        + "  - {when: {records: 50}, do: kill kafka, for: 3s}\n"
        + "  - {when: {records: 60}, do: kill opensearch, for: 3s}\n"
        + "  - {when: {records: 70}, do: kill namenode, for: 3s}\n"
        + "  - {when: {records: 80}, do: kill postgres, for: 3s}\n"
        + "  - {when: {records: 90}, do: lose node}\n"
        + "  - {when: {records: 91}, do: lose blocks}\n"
        + "  - {when: {records: 92}, do: enter safe mode, for: 3s}\n"
        + "  - {when: {records: 93}, do: rotate key}\n",
        [
            "6:31: schedule[0].do strikes kafka, which neither input, sink nor a placeholder names: strike what the pipeline is connected to",
            "7:31: schedule[1].do strikes opensearch, which neither input, sink nor a placeholder names: strike what the pipeline is connected to",
            *(
                f"{line}:31: schedule[{line - 6}].do strikes {struck}, which neither input, sink nor a placeholder names: strike what the pipeline is connected to"
                for line, struck in [(8, "hdfs"), (10, "hdfs"), (11, "hdfs"), (12, "hdfs"), (13, "eventhubs")]
            ),
        ],
    ),
    Case(
        "servers that a source, a sink, a placeholder or the checkpoint names",
        "name: n\n"
        "pipeline: {entry: pipelines/pay.py, checkpoint: hdfs, args: ['{opensearch.url}'], env: {H: '{eventhubs.bootstrap}'}}\n"
        "sink: {console: true}\n"
        "schedule:\n"
        "  - {when: {records: 50}, do: kill kafka, for: 3s}\n"
        "  - {when: {records: 60}, do: kill opensearch, for: 3s}\n"
        "  - {when: {records: 70}, do: kill namenode, for: 3s}\n"
        "  - {when: {records: 71}, do: lose node}\n"
        "  - {when: {records: 72}, do: lose blocks}\n"
        "  - {when: {records: 73}, do: enter safe mode, for: 3s}\n"
        "  - {when: {records: 74}, do: rotate key}\n",
        [],
    ),
    Case(
        "a server that nobody is connected to, as is expected",
        PIPELINE
        + "sink: {console: true}\n"
        + "schedule: [{when: {records: 60}, do: kill opensearch, for: 3s}]\n"
        + "verdict: untested\n",
        [],
    ),
    Case(
        "a sink in what is lost for good",
        PIPELINE
        + "sink: {hdfs: payments, expected: select id from ledger, key: [id]}\n"
        + "schedule:\n"
        + "  - {when: {records: 70}, do: lose blocks}\n"
        + "  - {when: {records: 80}, do: lose node}\n"
        + "  - {when: {records: 90}, do: kill datanode, for: 3s}\n"
        + "verdict: {violated: [lost]}\n",
        [
            f"{line}:12: schedule[{line - 5}].when: {name} takes for good what the sink in hdfs holds, whatever the program does: keep the sink elsewhere"
            for line, name in [(5, "lose blocks"), (6, "lose node")]
        ],
    ),
    Case("together alone", GOOD + "together: true\n", ["4:11: together: true needs two sinks or more"]),
    Case(
        "replay of nothing",
        GOOD + "input: {replay: data/nope.csv}\n",
        ["4:17: input.replay names 'data/nope.csv', and there is no such file in ROOT"],
    ),
    Case(
        "replay of no package",
        GOOD + "input: {replay: 'package:no_such_package/x.csv'}\n",
        ["4:17: input.replay names the package 'no_such_package', and none is installed"],
    ),
    Case(
        "replay of no name",
        GOOD + "input: {replay: 'package:a.b/x.csv'}\n",
        ["4:17: input.replay names the package 'a.b', and none is installed"],
    ),
    Case(
        "replay with a workload",
        GOOD + "input: {replay: data/orders.jsonl, workload: transactions, keys: 3}\n",
        [
            "4:46: input.workload means nothing for replay: the key says what is sent",
            "4:66: input.keys means nothing for replay: how many keys the records are spread over",
        ],
    ),
    Case(
        "key without replay",
        GOOD + "input: {key: id}\n",
        ["4:14: input.key means nothing for transactions: the column of a replayed file that is the record's key"],
    ),
    Case(
        "expected nothing",
        GOOD + "verdict: {}\n",
        ["4:10: verdict says nothing: held, inconclusive, untested or {violated: [KIND]}"],
    ),
    Case(
        "keys of versions before",
        GOOD.replace("expected:", "effect:") + "expect: held\n",
        [
            "3:21: unknown key 'sink.effect': it is called expected now",
            "4:1: unknown key 'expect': it is called verdict now",
        ],
    ),
    Case(
        "expected kinds under a key with a slip in it",
        GOOD + "verdict: {violatd: [lost]}\n",
        ["4:11: unknown key 'verdict.violatd'; did you mean 'violated'?"],
    ),
    Case(
        "expected beside a key with a slip in it",
        GOOD + "verdict: {violated: [lost], without_fault: true}\n",
        ["4:29: unknown key 'verdict.without_fault'; did you mean 'without_faults'?"],
    ),
    Case(
        "expected elsewhere, of a schedule",
        GOOD + "verdict: {default: held}\n",
        ["4:11: unknown key 'verdict.default': crash points are named for a sweep; add `crash_points: all`"],
    ),
    Case("expected no kind", GOOD + "verdict: {violated: []}\n", ["4:21: verdict.violated names no kind of finding"]),
    Case(
        "expected violated, bare",
        GOOD + "verdict: violated\n",
        ["4:10: verdict must be one of held, inconclusive, untested, {violated: [KIND]}, not 'violated'"],
    ),
    Case(
        "expected without faults alone",
        GOOD + "verdict: {without_faults: true}\n",
        ["4:27: verdict.without_faults belongs to violated: {violated: [KIND], without_faults: true}"],
    ),
    Case(
        "expected of every run what says that `expected` is wrong",
        GOOD + "verdict: {violated: [lost, wrong aggregate], without_faults: true}\n",
        [
            "4:28: wrong aggregate without faults too is an error, never violated: `expected` does not fit the pipeline",
        ],
    ),
    Case(
        "expected a word in a mapping",
        GOOD + "verdict: {word: held}\n",
        ["4:11: unknown key 'verdict.word': crash points are named for a sweep; add `crash_points: all`"],
    ),
    Case(
        "expected a kind twice",
        GOOD + "verdict: {violated: [lost, lost]}\n",
        ["4:28: verdict.violated names lost twice"],
    ),
    Case(
        "expected what is legal",
        GOOD + ("guarantee: at-least-once\nverdict: {violated: [duplicated]}\n"),
        ["5:22: duplicated is no violation of at-least-once"],
    ),
    Case(
        "together by different keys",
        PIPELINE
        + "sink: [{postgres: t, expected: select id from ledger, key: [id]}, "
        + "{postgres: u, expected: select seq from ledger, key: [seq]}]\ntogether: true\n",
        ["4:11: together: true needs the same key in each sink"],
    ),
    Case(
        "pause without end",
        GOOD + "timeout: 60s\nschedule: [{when: {rows: 3}, do: pause driver, for: 60s}]\n",
        ["5:53: schedule[0].for is not over before the run ends, which is after 60s: shorten it, or raise timeout"],
    ),
    Case(
        "another key for no time, and for longer than the run",
        GOOD
        + "timeout: 60s\nschedule:\n"
        + "  - {when: {rows: 3}, do: rotate key, back_after: 50ms}\n"
        + "  - {when: {rows: 3}, do: rotate key, back_after: 60s}\n",
        [
            "6:51: schedule[0].back_after is too short to strike anything: 0.1s at least",
            "7:51: schedule[1].back_after is not over before the run ends, which is after 60s: shorten it, or raise timeout",
        ],
    ),
    Case(
        "expected lost of at-most-once, from one of two sinks that must agree",
        PIPELINE
        + "sink: [{postgres: t, expected: select id from ledger, key: [id]}, "
        + "{postgres: u, expected: select id from ledger, key: [id]}]\n"
        + "together: true\nguarantee: at-most-once\nverdict: {violated: [lost]}\n",
        [],
    ),
    Case(
        "expected lost of at-most-once",
        GOOD + ("guarantee: at-most-once\nverdict: {violated: [lost, recovered]}\n"),
        [
            "5:28: verdict.violated[1] must be one of lost, duplicated, corrupted, unexpected, misordered, wrong aggregate, stalled, not 'recovered'"
        ],
    ),
    Case(
        "expected misordered without order",
        GOOD + "verdict: {violated: [misordered]}\n",
        ["4:22: misordered is never found: no sink has an order"],
    ),
    Case(
        "step that is a word",
        GOOD + "schedule: [kill driver]\n",
        ["4:12: schedule[0] must be a mapping, not 'kill driver'"],
    ),
    Case(
        "schedule that is a mapping",
        GOOD + "schedule: {when: {rows: 3}, do: kill driver}\n",
        ["4:11: schedule must be a list, not a mapping"],
    ),
    Case(
        "step without when and do",
        GOOD + "schedule: [{victim: jvm}]\n",
        ["4:12: schedule[0].do is missing", "4:12: schedule[0].when is missing"],
    ),
    Case(
        "when of nothing",
        GOOD + "schedule: [{when: {}, do: kill driver}]\n",
        ["4:19: schedule[0].when is one of elapsed, failpoint, op, point, records, request, rows, state_store"],
    ),
    Case(
        "when of two kinds",
        GOOD + "schedule: [{when: {rows: 3, elapsed: 3s}, do: kill driver}]\n",
        ["4:38: schedule[0].when holds rows and elapsed: one step has one trigger"],
    ),
    Case(
        "point without batch",
        GOOD + "schedule: [{when: {point: sink-committed}, do: kill driver}]\n",
        ["4:19: schedule[0].when.batch is missing: the crash point of which batch?"],
    ),
    Case(
        "query beside what belongs to none",
        GOOD
        + ("schedule:\n")
        + "  - {when: {rows: 0, query: a}, do: kill driver}\n"
        + "  - {when: {failpoint: f, query: a}, do: crash before offset commit}\n"
        + "  - {when: {batch: 1, query: a}, do: crash before offset commit}\n"
        + "  - {when: {point: sink-committed, batch: 1, query: a}, do: kill driver}\n"
        + "  - {when: {records: 3, query: a}, do: kill driver}\n",
        [
            "5:29: schedule[0].when.query means nothing for rows: the pipeline's own code, or the table, says whose it is",
            "6:34: schedule[1].when.query means nothing for failpoint: the pipeline's own code, or the table, says whose it is",
        ],
    ),
    Case(
        "commit of a sink that keeps no log of its own",
        GOOD + "schedule: [{when: {point: sink-committing, batch: 1}, do: kill driver}]\n",
        [
            "4:27: schedule[0].when.point cannot be seen: no sink here commits by renaming a file into a commit log in a folder of this machine; use rows, or a failpoint before the program's own commit"
        ],
    ),
    Case(
        "point that is not one",
        GOOD + "schedule: [{when: {point: sink-comitted, batch: -1}, do: kill driver}]\n",
        [
            "4:27: schedule[0].when.point must be one of block-received, batch-planned, batch-checkpointed, sink-committing, sink-committed, batch-committed, not 'sink-comitted'; did you mean 'sink-committed'?",
            "4:49: schedule[0].when.batch must be a whole number from 0 to 1000000, not '-1'",
        ],
    ),
    Case(
        "failpoint by a hostile name",
        GOOD + "schedule: [{when: {failpoint: ../x}, do: kill driver}]\n",
        ["4:31: schedule[0].when.failpoint must be a name of small letters, digits, '_', '.' and '-', not '../x'"],
    ),
    Case(
        "executor killed where it has nothing in flight",
        GOOD + "schedule: [{when: {point: sink-committed, batch: 1}, do: kill executor}]\n",
        ["4:27: at sink-committed no executor has anything in flight: kill it at rows"],
    ),
    Case(
        "python killed where the JVM commits all the same",
        GOOD + "schedule: [{when: {batch: 1}, do: crash before offset commit, victim: python}]\n",
        ["4:71: schedule[0].victim: the JVM lives on for a while and commits the offsets all the same"],
    ),
    Case(
        "victim of nobody",
        GOOD + "schedule: [{when: {rows: 3}, do: kill executor, victim: jvm}]\n",
        ["4:57: schedule[0].victim means nothing for kill executor: which processes of the driver die"],
    ),
    Case(
        "which driver",
        GOOD + "schedule: [{when: {rows: 3}, do: kill driver, which: all}]\n",
        ["4:54: schedule[0].which means nothing for kill driver: which executors die"],
    ),
    Case(
        "for without a pause",
        GOOD + "schedule: [{when: {rows: 3}, do: kill driver, for: 3s}]\n",
        ["4:52: schedule[0].for means nothing for kill driver: how long it lasts"],
    ),
    Case(
        "cut without for",
        GOOD + "schedule: [{when: {rows: 3}, do: disconnect driver}]\n",
        ["4:12: schedule[0].for is missing: how long it lasts, e.g. 3s"],
    ),
    Case(
        "pause that nobody feels",
        GOOD + "schedule: [{when: {rows: 3}, do: pause driver, for: 50ms}]\n",
        ["4:53: schedule[0].for is too short to strike anything: 0.1s at least"],
    ),
    Case(
        "a fault's own mistakes beside those of a trigger",
        GOOD + "schedule: [{when: [], do: pause driver, which: all}]\n",
        [
            "4:12: schedule[0].for is missing: how long it lasts, e.g. 3s",
            "4:19: schedule[0].when must be a mapping, not a list",
            "4:48: schedule[0].which means nothing for pause driver: which executors die",
        ],
    ),
    Case(
        "the JVM goes on without its program, also at a failpoint",
        GOOD + "schedule: [{when: {failpoint: f}, do: crash before offset commit, victim: python}]\n",
        [
            "4:75: schedule[0].victim: the JVM lives on for a while and commits the offsets all the same",
        ],
    ),
    Case(
        "pause without for",
        GOOD + "schedule: [{when: {rows: 3}, do: pause driver}]\n",
        ["4:12: schedule[0].for is missing: how long it lasts, e.g. 3s"],
    ),
    Case(
        "crash mid-sink without rows",
        GOOD + "schedule: [{when: {batch: 3}, do: crash mid-sink}]\n",
        ["4:19: crash mid-sink needs schedule[0].when.rows: after how many rows of the sink"],
    ),
    Case(
        "crash mid-sink at rows and more",
        GOOD + "schedule: [{when: {rows: 3, failpoint: f}, do: crash mid-sink}]\n",
        ["4:40: schedule[0].when holds rows and failpoint: one step has one trigger"],
    ),
    Case(
        "crash before offset commit at rows",
        GOOD + "schedule: [{when: {rows: 3}, do: crash before offset commit}]\n",
        ["4:26: crash before offset commit takes a batch or a failpoint, not rows"],
    ),
    Case(
        "crash before offset commit, no batch",
        GOOD + "schedule: [{when: {}, do: crash before offset commit}]\n",
        ["4:19: crash before offset commit needs schedule[0].when.batch or schedule[0].when.failpoint"],
    ),
    Case(
        "records that are never sent",
        GOOD + "schedule: [{when: {records: 601}, do: kill driver}]\n",
        ["4:29: schedule[0].when.records never comes: only 600 records are sent"],
    ),
    Case(
        "records beyond the input's",
        GOOD + ("schedule: [{when: {records: 6}, do: kill driver}]\ninput: {replay: data/orders.jsonl, records: 5}\n"),
        ["4:29: schedule[0].when.records never comes: only 5 records are sent"],
    ),
    Case(
        "elapsed beyond the end",
        GOOD + "schedule: [{when: {elapsed: 4m}, do: kill driver}]\n",
        ["4:29: schedule[0].when.elapsed never comes: the run ends within 240s"],
    ),
    Case(
        "batches that never come",
        GOOD + "input: {records: 5}\nschedule:\n"
        "  - {when: {point: batch-planned, batch: 9}, do: kill driver}\n"
        "  - {when: {point: batch-planned, batch: 10}, do: kill driver}\n"
        "  - {when: {batch: 10}, do: crash before offset commit}\n"
        "  - {when: {rows: 1, batch: 10}, do: kill driver}\n"
        "  - {when: {point: batch-planned, batch: 10, query: second}, do: kill driver}\n"
        "  - {when: {failpoint: f, batch: 10}, do: kill driver}\n",
        [
            "7:42: schedule[1].when.batch never comes: 5 records make batches 0 to 9 at the most",
            "8:20: schedule[2].when.batch never comes: 5 records make batches 0 to 9 at the most",
            "9:29: schedule[3].when.batch never comes: 5 records make batches 0 to 9 at the most",
        ],
    ),
    Case(
        "rows without a table",
        PIPELINE
        + (
            "sink: {postgres: select id from t, expected: select id from ledger, key: [id]}\n"
            "schedule: [{when: {rows: 3}, do: kill driver}]\n"
        ),
        [
            "4:26: schedule[0].when.rows cannot be counted: no sink counts its rows; name a table of the run's own in a sink that counts rows, or take a failpoint"
        ],
    ),
    Case(
        "rows at a console",
        PIPELINE + ("sink: {console: true}\nschedule: [{when: {rows: 3}, do: kill driver}]\n"),
        [
            "4:26: schedule[0].when.rows cannot be counted: no sink counts its rows; name a table of the run's own in a sink that counts rows, or take a failpoint"
        ],
    ),
    Case(
        "points without a checkpoint",
        (
            "name: n\n"
            "pipeline: {entry: pipelines/pay.py, progress: group}\n"
            "sink: {postgres: t, expected: select id from ledger, key: [id]}\n"
            "schedule:\n"
            "  - {when: {point: sink-committed, batch: 3}, do: kill driver}\n"
            "  - {when: {batch: 3}, do: crash before offset commit}\n"
            "  - {when: {rows: 3, batch: 3}, do: crash mid-sink}\n"
            "  - {when: {failpoint: f, batch: 3}, do: crash before offset commit}\n"
            "  - {when: {rows: 3}, do: crash mid-sink}\n"
            "  - {when: {elapsed: 3s}, do: kill driver}\n"
        ),
        [
            "5:20: schedule[0].when.point never comes: progress is not checkpoint, so none is watched; use a failpoint or rows",
            "6:12: crash before offset commit needs schedule[1].when.failpoint: progress is not checkpoint, so only the pipeline's own code knows",
            "7:29: schedule[2].when.batch cannot be seen: progress is not checkpoint, so batches are not watched; leave it out",
            "10:22: schedule[5].when.elapsed may find nothing in flight: progress is not checkpoint, so batches are not seen; use a failpoint or rows",
        ],
    ),
    Case(
        "Spark's log is a position and no plan",
        (
            "name: n\n"
            "pipeline: {entry: pipelines/pay.py, progress: async}\n"
            "sink: {postgres: t, expected: select id from ledger, key: [id]}\n"
            "schedule:\n"
            "  - {when: {point: batch-planned, batch: 3}, do: kill driver}\n"
            "  - {when: {batch: 3}, do: crash before offset commit}\n"
            "  - {when: {failpoint: f}, do: crash before offset commit}\n"
            "  - {when: {records: 50}, do: kill driver}\n"
        ),
        [
            "5:20: schedule[0].when.point cannot be seen: progress is async, so Spark logs offsets late, and not for every batch; use records, elapsed, rows or a failpoint",
            "6:12: crash before offset commit needs schedule[1].when.failpoint: progress is async, so Spark logs offsets late, and not for every batch",
        ],
    ),
    Case(
        "a wrong part hides nothing and invents nothing",
        (
            "name: n\n"
            "pipeline: {entry: pipelines/pay.py, progress: checkpont}\n"
            "sink: [{postgres: T, expected: select id from ledger, key: [id]}]\n"
            "together: true\n"
            "input: {records: all}\n"
            "guarantee: at-leest-once\n"
            "timeout: long\n"
            "verdict: {violated: [duplicated, misordered]}\n"
            "schedule:\n"
            "  - {when: {records: 9999}, do: kill driver}\n"
            "  - {when: {elapsed: 9h}, do: kill driver}\n"
            "  - {when: {rows: 3}, do: kill driver}\n"
            "  - {when: {point: sink-committed, batch: 3}, do: kill driver}\n"
        ),
        [
            "2:47: pipeline.progress must be checkpoint, async, dstreams, group or a query (select, with) for the next offsets, not 'checkpont'; did you mean 'checkpoint'?",
            "3:19: sink[0].postgres must be a table (small letters, digits, '_', its schema before a dot) or a query (select, with), not 'T': made without quotes it is t; made with them, read it by a query: select * from \"T\"",
            "5:18: input.records must be a whole number from 1 to 10000000, not 'all'",
            "6:12: guarantee must be one of exactly-once, at-least-once, at-most-once, not 'at-leest-once'; did you mean 'at-least-once'?",
            "7:10: timeout must be a duration such as 250ms, 3s or 2m, not 'long'",
        ],
    ),
    Case(
        "a wrong input invents nothing",
        GOOD + ("schedule: [{when: {records: 9999}, do: kill driver}]\ninput: 7\n"),
        ["5:8: input must be a mapping, not '7'"],
    ),
]
HEADERS = [
    Case(
        "header not closed",
        "x = 1\n# /// onceproof\n# args: [a]\n",
        ["2:1: the header block that begins here has no end: '# ///'"],
    ),
    Case(
        "header with code in it",
        ("# /// onceproof\n# args: [a]\nx = 1\n# ///\n"),
        ["3:1: a line of the header block begins with '# '; the block of line 1 ends with '# ///'"],
    ),
    Case(
        "two headers",
        ("# /// onceproof\n# args: [a]\n# ///\n# /// onceproof\n# ///\n"),
        ["4:1: a second header block; the first begins on line 1"],
    ),
    Case(
        "unknown key in a header",
        ("#!/usr/bin/env python\n# /// onceproof\n# arg: [a]\n#\n# name: n\n# ///\n"),
        ["3:3: unknown key 'arg'; did you mean 'args'?", "5:3: unknown key 'name'"],
    ),
    Case(
        "wrong values in a header",
        ("# /// onceproof\r\n# executors: none\r\n# input: {replay: nope.csv}\r\n# progress: '{x}'\r\n# ///\r\n"),
        [
            "2:14: executors must be a whole number from 1 to 64, not 'none'",
            "3:19: input.replay names 'nope.csv', and there is no such file in ROOT",
            "4:13: progress must be checkpoint, async, dstreams, group or a query (select, with) for the next offsets, not '{x}'",
        ],
    ),
    Case(
        "header that is not YAML",
        ("# /// onceproof\n# args: [a\n# ///\n"),
        ["2:11: not YAML: expected ',' or ']', but got '<stream end>'"],
    ),
    Case(
        "header that is a list",
        ("# /// onceproof\n# - a\n# ///\n"),
        ["2:3: the top level must be a mapping, not a list"],
    ),
    Case(
        "header with a tag",
        ("# /// onceproof\n# args: !!x [a]\n# ///\n"),
        ["2:9: tag tag:yaml.org,2002:x is not allowed: each key knows its type"],
    ),
    Case(
        "header's together alone",
        ("# /// onceproof\n# together: true\n# ///\n"),
        ["2:13: together: true needs two sinks or more"],
    ),
    Case("empty header", ("# /// onceproof\n# ///\n"), []),
    Case(
        "too deep a header",
        ("# /// onceproof\n# args: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n# ///\n"),
        ["2:40: more than 32 levels deep: this is no scenario"],
    ),
]


def mistakes(home: Path, data: bytes) -> list[str]:
    """What load says of a file, its place shortened."""
    path = home / "s.yaml"
    path.write_bytes(data)
    try:
        load(path)
    except ScenarioError as failure:
        return [str(mistake).replace(str(home.parent), "ROOT") for mistake in failure.mistakes]
    return []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_mistake_in_a_scenario(case: Case, tmp_path: Path) -> None:
    said = mistakes(project(tmp_path), case.text.encode())
    assert said == [f"ROOT/scenarios/s.yaml:{words}" for words in case.said]


@pytest.mark.parametrize("case", HEADERS, ids=lambda case: case.name)
def test_a_mistake_in_a_header(case: Case, tmp_path: Path) -> None:
    home = project(tmp_path)
    (tmp_path / ENTRY).write_bytes(case.text.encode())
    assert mistakes(home, GOOD.encode()) == [f"ROOT/{ENTRY}:{words}" for words in case.said]


def test_a_header_that_cannot_be_read_may_have_a_sink(tmp_path: Path) -> None:
    home = project(tmp_path)
    (tmp_path / ENTRY).write_text("# /// onceproof\n# sink: [a\n# ///\n", encoding="utf-8")
    (mistake,) = mistakes(home, PIPELINE.encode())
    assert mistake.startswith(f"ROOT/{ENTRY}:2:")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    said = mistakes(project(tmp_path), b"name: n\nwhy: caf\xe9\n")
    assert said == ["ROOT/scenarios/s.yaml:2:9: not UTF-8: byte 0xe9"]


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"nope\.yaml:1:1: cannot be read: No such file or directory"):
        load(tmp_path / "nope.yaml")
    with pytest.raises(ScenarioError, match=r":1:1: cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(ScenarioError, match=r":1:1: cannot be read: embedded null"):
        load(tmp_path / "a\0b.yaml")


def test_a_pipeline_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project(tmp_path)

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("harness.load.header", denied)
    assert mistakes(home, GOOD.encode()) == [
        "ROOT/scenarios/s.yaml:2:11: pipeline 'pipelines/pay.py' cannot be read: Permission denied"
    ]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("# a note\nhello there\n", ": invalid syntax (line 2)"),
        ("def f():\n    pass\nreturn 1\n", ": 'return' outside function (line 3)"),
        ("import sys\nprint(sys.argv)\n", ""),
        ("x = '\\d'\n", ""),
        ("PK\3\4\0 an archive can be run too", ""),
    ],
)
def test_a_pipeline_that_is_no_python(tmp_path: Path, program: str, said: str) -> None:
    home = project(tmp_path)
    (tmp_path / ENTRY).write_text(program, encoding="utf-8")
    cannot = f"which Python {platform.python_version()} cannot read"
    asked = f"ROOT/scenarios/s.yaml:2:11: pipeline names 'pipelines/pay.py', {cannot}{said}"
    assert mistakes(home, GOOD.encode()) == ([asked] if said else [])


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("program", "line"),
    [
        (b"x = 1\n# caf\xe9\n", 2),
        (b"# caf\xe9\n", 1),
        (b"# coding: utf-8\nx = 1\nx = '\xe9'\n", 3),
        (b"# -*- coding: latin-1 -*-\n# caf\xe9\n", 0),
        (b"#!/usr/bin/env python\n# vim: set fileencoding=latin-1 :\nx = 'caf\xe9'\n", 0),
        ("\ufeffgröße = 1\n".encode(), 0),
    ],
)
def test_a_pipeline_in_an_encoding_that_it_does_not_declare(tmp_path: Path, program: bytes, line: int) -> None:
    """The interpreter is asked as well: in a comment `compile` takes such bytes."""
    home = project(tmp_path)
    (tmp_path / ENTRY).write_bytes(program)
    ran = subprocess.run([sys.executable, tmp_path / ENTRY], capture_output=True, timeout=PROCESS_S, check=False)
    assert (ran.returncode != 0, b"SyntaxError" in ran.stderr) == (bool(line), bool(line))
    cannot = (
        f"which Python {platform.python_version()} cannot read: byte 0xe9 is no UTF-8 (line {line}): save it as UTF-8"
    )
    found = mistakes(home, GOOD.encode())
    assert len(found) == bool(line) and all(cannot in each for each in found)


READS = "spark.readStream.option('subscribe', topic)\n"
FIRST = "input.topics feeds 2 topics, and the program is given {topic} alone, the first of them: give it {kafka.topics}"


@pytest.mark.parametrize(
    ("args", "program", "said"),
    [
        ('"{topic}"', READS, True),
        ('--topic, "{topic}", --into, t', READS, True),
        ('"{kafka.topic}"', READS, True),
        ('"{topics}"', READS, False),
        ('"{topic}", "{kafka.pattern}"', READS, False),
        ('"{topic}.*"', READS, False),
        ('--by-pattern, "{topic}"', READS, False),
        ('"{topic}"', READS.replace("subscribe", "subscribePattern"), False),
        ('"{topic}"', "from helpers import payments\n", False),
        ("t", READS, False),
    ],
)
def test_several_topics_of_which_one_is_read(tmp_path: Path, args: str, program: str, said: bool) -> None:
    home = project(tmp_path)
    (tmp_path / ENTRY).write_text(program, encoding="utf-8")
    text = GOOD.replace("pipeline: pipelines/pay.py", f"pipeline: {{entry: pipelines/pay.py, args: [{args}]}}")
    assert mistakes(home, f"{text}input: {{topics: 1}}\n".encode()) == []
    found = mistakes(home, f"{text}input: {{topics: 2}}\n".encode())
    first = FIRST.replace("{topic}", args.strip('"')) if "kafka.topic}" in args else FIRST
    assert len(found) == said and all(f":4:17: {first}" in each for each in found)


def test_a_module_without_a_spec_is_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project(tmp_path)
    monkeypatch.setitem(sys.modules, "homeless", ModuleType("homeless"))
    assert mistakes(home, (GOOD + "input: {replay: 'package:homeless/x.csv'}\n").encode()) == [
        "ROOT/scenarios/s.yaml:4:17: input.replay names the package 'homeless', and none is installed"
    ]


def test_places_are_written_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = project(tmp_path)
    (home / "s.yaml").write_text(GOOD + "zzz: 1\n", encoding="utf-8")
    (tmp_path / ENTRY).write_text("# /// onceproof\n# zzz: 1\n# ///\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        load(Path("scenarios/s.yaml"))
    assert str(caught.value) == ("pipelines/pay.py:2:3: unknown key 'zzz'\nscenarios/s.yaml:4:1: unknown key 'zzz'")
