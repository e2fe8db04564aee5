"""Recipes: TOML into models that forbid unknown keys."""
