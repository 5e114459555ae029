"""Sessions: what one is (state), how it moves (steps), and the ledger that charges once."""
