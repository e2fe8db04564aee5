"""Processes: one module per kind of worker, what each owns, how it starts and dies; the embedded services."""
