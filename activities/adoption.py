"""Groups of an ancestor that a fork takes over: the fork's group says what the ancestor's said, by its rollouts."""

from activities.stores import Stores
from stepwell.events import RunForked
from stepwell.events.streams import parse_prompt_stream, prompt_stream


async def adopt(stores: Stores, run: str, fork: RunForked, step: int) -> None:
    """Takes over the groups of a step, once, before its other prompts are rolled out.

    Raises:
        Fenced: a group of the fork's own stands in the place of one.
    """
    for child in fork.reused:
        name = parse_prompt_stream(child.stream)
        if name.scope != str(step):
            continue
        recorded = await stores.ledger.read(child.stream)
        await stores.ledger.append(
            prompt_stream(run, name.scope, name.prompt),
            [each.event for each in recorded],
            expected_seq=0,
            actor=stores.actor,
        )
