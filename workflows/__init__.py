"""What happens next: Temporal workflows, one per file. No I/O, no torch, no clock but `workflow.now()`."""
