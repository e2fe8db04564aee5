"""Losses and corrections, one a file; `policy_loss` puts them together as a recipe says. The only torch under
`stepwell/rl/`.

p is a token's log-probability by the trainer, q by the engine that sampled it (both under the sampling temperature), A
its rollout's advantage, sg the stop of the gradient. A recipe makes one update a batch, so the policy before the update
is the one that is trained: there is no third log-probability. Formulas, sources and keys in one table: docs/losses.md.

Shape suffixes: N generated tokens of a micro-batch, row after row; n those that train; B rows.
"""
