"""Task sets and grading."""
