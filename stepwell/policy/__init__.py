"""Models, tokenisation and chat rendering, trainer backends, generation engines."""
