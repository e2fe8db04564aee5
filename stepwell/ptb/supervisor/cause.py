"""Why an agent is ended before it ends by itself."""

from dataclasses import dataclass

from stepwell.ptb.supervisor.meter import Use
from stepwell.ptb.supervisor.order import AgentOrder
from stepwell.ptb.supervisor.records import Ended


@dataclass(frozen=True)
class Cause:
    """Of an end."""

    ended: Ended
    detail: str
    """In words."""


def bound_reached(order: AgentOrder, remaining_s: float, used: Use, disk_bytes: int) -> Cause | None:
    """The first of an order's bounds that was reached, None while there is none.

    Args:
        order: With budget and limits.
        remaining_s: Of its working time.
        used: Tokens and money so far.
        disk_bytes: In the agent's folders.
    """
    budget = order.budget
    if remaining_s <= 0.0:
        return Cause("time", f"worked for {budget.time_s:g} s, its budget")
    if budget.tokens is not None and used.tokens >= budget.tokens:
        return Cause("tokens", f"used {used.tokens} tokens of {budget.tokens}")
    if budget.money is not None and used.cost >= budget.money:
        return Cause("money", f"used {used.cost:.4f} US dollars of {budget.money:.4f}")
    if disk_bytes > order.limits.disk_bytes:
        return Cause("crash", f"took {disk_bytes} bytes on disk of {order.limits.disk_bytes}")
    return None
