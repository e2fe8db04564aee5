"""Trainer backends: what turns one weight version and a batch into the next."""
