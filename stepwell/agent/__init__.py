"""The harness: tools and the episode loop."""
