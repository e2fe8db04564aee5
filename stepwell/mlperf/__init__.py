"""MLPerf Training's LLM post-training benchmark."""
