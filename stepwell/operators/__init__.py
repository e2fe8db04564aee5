"""What operators asked of a run, folded."""
