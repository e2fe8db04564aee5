"""An engine over HTTP: the process that owns it serves, rollouts on other processes ask."""
