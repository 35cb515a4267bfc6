"""The checkers: pure functions over (ledger, sink rows, step outcomes). No Spark, Kafka, Docker or database in here."""
