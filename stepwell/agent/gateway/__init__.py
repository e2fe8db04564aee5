"""An OpenAI-compatible endpoint that records, token by token, what any harness has a policy say."""
