"""Steps of a run that a test wrote, as a replay reads them."""

from stepwell.audit.dispatched import steps_of
from stepwell.audit.recipe import AuditedRecipe
from stepwell.audit.replaying.difference import Difference
from stepwell.audit.replaying.replay import StepReplay, replay
from stepwell.audit.replaying.rows import row_differences
from stepwell.audit.replaying.step_record import StepRecord, StreamRead, step_record
from stepwell.events import RunCreated, StepAdmitted
from tests.book import MemoryBook


def recipe_of(book: MemoryBook) -> AuditedRecipe:
    """What decides the run's batches."""
    return AuditedRecipe.model_validate(book.first(f"run/{book.run}", RunCreated).recipe)


def record_of(book: MemoryBook, step: int) -> StepRecord:
    """A step of the run."""
    events = book.events[f"run/{book.run}"]
    admitted = next((each for each in events if isinstance(each, StepAdmitted) and each.step == step), None)
    streams = {name: StreamRead(told, book.hashes[name][-1]) for name, told in book.events.items()}
    batch = None if admitted is None else book.blobs.get(admitted.manifest)
    return step_record(book.run, steps_of(book.run, enumerate(events))[step], streams, admitted, batch)


def replayed(book: MemoryBook, step: int) -> StepReplay:
    """A step replayed, with the rows of its rollouts."""
    record = record_of(book, step)
    rows: list[Difference] = []
    for group in record.groups:
        rows += row_differences(step, group, book.blobs)
    return replay(record, recipe_of(book), rows)
