"""Tables for reading, folded from the ledger."""
