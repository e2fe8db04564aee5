"""One rule a file: `check(record, tally)`, a pure function of a run's record."""
