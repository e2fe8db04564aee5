"""What runs in an evaluation's sandbox: it has the model and the questions, and nothing to hold answers against."""
