"""Business ids of workflows: the same work has the same id, whoever starts it."""


def run_id(run: str) -> str:
    """Workflow id of a run."""
    return f"stepwell/{run}"


def group_id(run: str, scope: str, first_prompt: int) -> str:
    """Workflow id of a prompt group, or of a shard of a validation by its first prompt."""
    return f"stepwell/{run}/prompt/{scope}/{first_prompt}"


def validation_id(run: str, scope: str) -> str:
    """Workflow id of a validation."""
    return f"stepwell/{run}/validation/{scope}"


def run_of(workflow_id: str) -> str:
    """Name of the run that a workflow belongs to; a run's name has no slash."""
    return workflow_id.split("/")[1]


def run_set_id(run_set: str) -> str:
    """Workflow id of a set of benchmark trials."""
    return f"stepwell-ptb/{run_set}"


def trial_id(run_set: str, cell: str) -> str:
    """Workflow id of a trial."""
    return f"stepwell-ptb/{run_set}/{cell}"


def trial_host_queue(host: str) -> str:
    """Task queue of what must be done where an agent's files lie."""
    return f"trial-{host}"
