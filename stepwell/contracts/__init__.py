"""What passes between workflows and activities: frozen models, references, never payloads."""
