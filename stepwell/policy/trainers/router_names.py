"""Which weights choose the experts of a mixture-of-experts model."""

ROUTER = ".mlp.gate.weight"
"""How their names end in the Hugging Face form."""
NO_ROUTER = "trainer.freeze_router would do nothing: the model has no experts; leave it out"
