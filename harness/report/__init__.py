"""What a run says to people: failure text, table, summary, HTML."""
