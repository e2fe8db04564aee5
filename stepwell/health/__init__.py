"""Whether a run gets on: stalls, and what it used against its limits."""
