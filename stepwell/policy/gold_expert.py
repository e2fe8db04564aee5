"""What an expert calls who knows a task's gold patch, and looks before it edits. Pure."""

from stepwell.agent.tool_calls import ToolCall
from stepwell.sandbox.protocol import WORK
from stepwell.tasks.gold_change import GoldChange, gold_change
from stepwell.tasks.place import Place, place_in
from stepwell.tasks.task import Task


class NotDemonstrable(ValueError):
    """No demonstration of the task shows how its repair follows from what was seen."""


def repair_calls(task: Task) -> tuple[ToolCall, ToolCall, ToolCall]:
    """Views the lines that the issue names, makes the edit, finishes. The texts of the edit are as short as they can
    be: a single line without its margins, if that occurs once in the file, else whole lines among those seen.

    Raises:
        NotDemonstrable: the issue names no lines, or those that it names do not make the edit unmistakable.
    """
    try:
        place, change = place_in(task.issue), gold_change(task)
    except ValueError as error:
        raise NotDemonstrable(str(error)) from error
    old, new = _texts(change, place, task.id)
    path = f"{WORK}/{change.path}"
    view = {"command": "view", "path": place.path, "view_range": [place.first, place.last]}
    edit = {"command": "str_replace", "path": path, "old_str": old, "new_str": new}
    if "<|" in old + new:
        raise NotDemonstrable(f"the change of {task.id} holds the beginning of a control token")
    return (
        ToolCall("str_replace_editor", view),
        ToolCall("str_replace_editor", edit),
        ToolCall("finish", {"message": "Repaired."}),
    )


def _texts(change: GoldChange, place: Place, name: str) -> tuple[str, str]:
    """`old_str` and `new_str`."""
    file, repaired = "\n".join(change.wrong), "\n".join(change.right)

    def makes_it(old: str, new: str) -> bool:
        return bool(old) and file.count(old) == 1 and file.replace(old, new) == repaired

    first, end, beyond = change.first, change.wrong_end, len(change.right) - len(change.wrong)
    if end - first == 1 and beyond == 0:
        old, new = change.wrong[first].strip(), change.right[first].strip()
        if makes_it(old, new):
            return old, new
    while True:
        old, new = "\n".join(change.wrong[first:end]), "\n".join(change.right[first : end + beyond])
        if makes_it(old, new):
            return old, new
        if first > place.first - 1:
            first -= 1
        elif end < place.last:
            end += 1
        else:
            raise NotDemonstrable(f"what {name} changes occurs again in its file, with all the lines that were seen")
