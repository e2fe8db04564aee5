"""Sandboxes: where an agent's commands and hidden tests run."""
