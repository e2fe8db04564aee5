"""What must hold of a run's ledger, as pure rules over its record."""
