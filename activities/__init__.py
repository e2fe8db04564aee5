"""The work itself, thin: read inputs, call `stepwell`, append facts."""
