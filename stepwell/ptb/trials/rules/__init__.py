"""Rules of an audit of trials, one a file: what holds of a run set, and a pure function that looks at its record."""
