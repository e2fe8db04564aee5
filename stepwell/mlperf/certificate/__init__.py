"""The completeness certificate: that a run trained and evaluated all that it had to, from its events alone."""
