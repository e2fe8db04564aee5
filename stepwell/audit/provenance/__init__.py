"""Where each thing of a run comes from and what came of it, as a graph. Pure: who reads the ledger is elsewhere."""
