"""PostTrainBench: agents that post-train a base model on their own, scored and ranked. docs/posttrainbench.md."""
