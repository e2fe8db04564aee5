"""The trainer on Megatron-core: a model whose tensors are cut among processes."""
