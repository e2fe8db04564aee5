"""The `stepwell` command, a module per verb."""
