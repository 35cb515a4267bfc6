"""What the values of a scenario file look like, one by one, and the words that refuse them; and where the
files and the kinds of a project are."""
