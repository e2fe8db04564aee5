"""What rollouts need of a policy's folder: its tokenizer, as a renderer."""

from dataclasses import dataclass, field

from tokenizers import Tokenizer

from activities.folders import get_file
from activities.stores import Stores
from stepwell.agent.chat import FORMATS, ChatRenderer
from stepwell.events import VersionCreated
from stepwell.recipe.recipe import Recipe


@dataclass
class PolicyFiles:
    """Renderers by run; a run's tokenizer is that of version 0 and never changes."""

    stores: Stores
    _renderers: dict[str, ChatRenderer] = field(default_factory=dict[str, ChatRenderer])

    async def renderer(self, run: str, recipe: Recipe) -> ChatRenderer:
        """The run's renderer.

        Raises:
            LookupError: the run has no version 0 yet.
        """
        if run not in self._renderers:
            recorded = await self.stores.weights(run)
            created = next((each.event for each in recorded if isinstance(each.event, VersionCreated)), None)
            if created is None:
                raise LookupError(f"run {run} has no version 0 yet")
            tokenizer = Tokenizer.from_buffer(await get_file(self.stores.blobs, created.export, "tokenizer.json"))
            self._renderers[run] = ChatRenderer(tokenizer, FORMATS[recipe.agent.chat or "micro"])
        return self._renderers[run]
