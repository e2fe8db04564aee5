"""The run that the chaos suite disturbs: every kind of event in it, and small."""

RUN = "chaos"
"""Name of every run of the suite: facts that hold names of streams are then equal too."""

RECIPE = """
name = "chaos"

# Two steps, so that one trains on what the version before generated, while the other is generated. At this temperature
# and with this seed both steps have a rollout that passes and one that fails: each step moves the weights.
[run]
seed = 2
max_steps = 2
prompts_per_step = 1
samples_per_prompt = 2
max_staleness = 1
checkpoint_every = 2
steps_per_history = 1

[policy]
kind = "micro"

[tasks]
source = "forged"

[agent]
tools = "compact"
max_turns = 2
max_context_tokens = 384
max_turn_tokens = 12

[sampling]
temperature = 2.0

[rl]
normalise = "group_std"
force_on_policy_ratio = false
overlong_filtering = false

[optimiser]
learning_rate = 1e-3

# One sequence at a time, and no reuse of prefixes: the bits of a token then depend on nothing but its own rollout.
[engine]
max_context = 384
max_batch = 1
idle_rows = 0
reuse_prefixes = false

[sandbox]
concurrency = 4

# Several faults may hit one rollout.
[failures]
rollout_attempts = 10

[validation]
tasks = 1
samples = 1
every = 2
first = 2
initial = false
"""
