"""Pure functions of reinforcement learning: what an auditor replays."""
