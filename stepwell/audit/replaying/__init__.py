"""A step's batch computed again from what is recorded of it, and where it differs. Pure: no model, no clock, no I/O."""
