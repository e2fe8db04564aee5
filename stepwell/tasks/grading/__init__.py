"""Grading: a fresh sandbox, hidden tests put in last, and a verdict that printed text cannot forge."""
