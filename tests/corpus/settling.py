"""Item 10, as far as a run folder shows it: tables that are late, or could not be read."""

from __future__ import annotations

from collections.abc import Iterator

from harness.run_folder.ledger import State
from harness.scenario import Kind
from tests.corpus.case import adversary, held, inconclusive, untested, violated
from tests.corpus.counters import counting
from tests.corpus.run_builder import RunBuilder, blame

LOST, UNEXPECTED = Kind.LOST, Kind.UNEXPECTED


@adversary(10, untested("step 1 (`kill driver`) does not count for postgres payments:"), twin=held("1 loss"))
def table_was_not_there_yet(run: RunBuilder) -> Iterator[str]:
    """The program makes its table with its first batch. When the fault was injected nothing could be read, so nothing
    shows what was exposed."""
    run.injection(0, point="batch-planned", holds=0)
    run.unread["1-injection/0"] = 'relation "payments" does not exist'
    yield "the table was there, and empty"
    run.unread.clear()


@adversary(10, untested("its snapshot failed: the server is gone"), twin=held("1 repetition"))
def snapshot_failed(run: RunBuilder) -> Iterator[str]:
    """The fault has evidence, and where everything stood when the fault was injected is not known."""
    run.injection(1, error="the server is gone", states=(), tables=[None])
    yield "the snapshot was taken"
    run.found(error="", states=None, tables=None)


@adversary(
    10,
    inconclusive("still at work", shown=("1 repetition",)),
    twin=violated(Kind.LOST, 20, blame()),
)
def rows_lie_behind_an_open_transaction(run: RunBuilder) -> Iterator[str]:
    """The last two batches are in the topic, behind the transaction of a producer that was killed: who reads committed
    records has them when the broker ends it. The harness saw the transaction, and called the rows lost."""
    run.injection(1)
    run.tables = [run.rows((0, 20))]
    run.calm()
    open_ = "inconclusive: the sink's server was still at work after 75 s: transaction of producer 7 in partition 0"
    run.outcome = {"reasons": [open_]}
    yield "no transaction was open when the sink was read"
    run.outcome = {}


@adversary(
    10,
    inconclusive("may be of records that the source lacked", shown=None),
    twin=violated(Kind.UNEXPECTED, 1, blame(), fits=None),
)
def a_record_came_after_the_source_was_read_back(run: RunBuilder) -> Iterator[str]:
    """A send without an answer is there at last, when all records had been read back, and the pipeline takes it before
    it is ended. The ledger has no such record, and its row was called unexpected."""
    run.injection(1)
    run.tables = [[*run.rows((0, 40)), ("40", "a0", "40.4")]]
    run.calm()
    run.outcome = {"caught_up": False, "grew": True, "reasons": ["not caught up: the source grew"]}
    yield "nothing came after that"
    run.outcome = {}


@adversary(
    10,
    untested("the source lost 1 acknowledged records", shown=None),
    twin=violated(Kind.UNEXPECTED, 1, blame(), fits=None),
)
def the_source_lost_a_record_that_was_taken(run: RunBuilder) -> Iterator[str]:
    """The broker has acknowledged a record and lost it since. The pipeline had taken it by then, and its row is one
    that nobody expects."""
    run.injection(1)
    run.tables = [run.rows((0, 40))]
    run.gone = frozenset({35})
    run.calm()
    yield "the send of that record has failed, and it never was in the source"
    run.states = lambda seq: State.FAILED if seq == 35 else State.ACKNOWLEDGED


@adversary(
    10,
    inconclusive(
        "at the reading of step 1, 2 totals of postgres totals were not those of the", shown=("1 repetition",)
    ),
    twin=held(
        "1 repetition",
    ),
)
def totals_are_late(run: RunBuilder) -> Iterator[str]:
    """Spark had called batch 1 done and written batch 2, and the totals were those of batch 0: a sink that shows its
    rows late, or a lost batch that something made up for."""
    counting(run, 4, 5, 6, 7)
    run.injection(2, holds=8)
    yield "the scenario says that the sink shows its rows late"
    run.claim(quiet_period_s=5.0)
