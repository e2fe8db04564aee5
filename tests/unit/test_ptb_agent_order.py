"""Orders that would not do what they seem to are refused; bounds that are reached have a cause."""

import pytest
from pydantic import ValidationError

from stepwell.ptb.network.policy import NetworkPolicy
from stepwell.ptb.supervisor import AgentOrder, Budget, Limits, Mount, Prices, UsageRule
from stepwell.ptb.supervisor.cause import bound_reached
from stepwell.ptb.supervisor.meter import Use
from stepwell.ptb.supervisor.sandbox import agent_environment

LIMITS = Limits(memory_bytes=1 << 30, processes=10, disk_bytes=1000)
READS_TOKENS = UsageRule(pattern=r"(?P<input>\d+)", counts="each")
READS_COST = UsageRule(pattern=r"(?P<cost>\d+)", counts="each")
PRICES = Prices(input=1.0, output=1.0, cached=1.0)


def order(**fields: object) -> AgentOrder:
    """An order."""
    values: dict[str, object] = {
        "argv": ("agent",),
        "work": "/work",
        "budget": Budget(time_s=60.0),
        "network": NetworkPolicy(mode="none"),
        "limits": LIMITS,
    }
    return AgentOrder.model_validate(values | fields)


def test_an_order_is_the_same_after_it_was_written_and_read() -> None:
    full = order(usage=(READS_TOKENS,), prices=PRICES, mounts=(Mount(source="/a", at="/b"),), environment={"A": "b"})
    assert AgentOrder.model_validate_json(full.model_dump_json()) == full


@pytest.mark.parametrize(
    "fields",
    [
        {"argv": ()},
        {"work": "work"},
        {"work": "/work/../etc"},
        {"work_at": "task"},
        {"home": "~"},
        {"mounts": ({"source": "model", "at": "/model"},)},
        {"mounts": ({"source": "/model", "at": "/a/../../b"},)},
        {"secrets": ("KEY",), "environment": {"KEY": "value"}},
        {"environment": {"A=B": "c"}},
        {"secrets": ("",)},
        {"budget": {"time_s": 0.0}},
        {"budget": {"time_s": float("inf")}},
        {"budget": {"time_s": 1.0, "tokens": 5}},
        {"budget": {"time_s": 1.0, "tokens": 5}, "usage": (READS_COST,)},
        {"budget": {"time_s": 1.0, "money": 5.0}, "usage": (READS_TOKENS,)},
        {"prices": PRICES},
        {"prices": PRICES, "usage": (READS_COST,)},
        {"lease_s": 0.0},
        {"image": "/a.sif", "devices": ("/dev/nvidia0",)},
        {"unknown": 1},
    ],
    ids=str,
)
def test_an_order_that_contradicts_itself_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        order(**fields)


@pytest.mark.parametrize(
    ("remaining_s", "used", "disk_bytes", "ended"),
    [
        (1.0, Use(input=9, cost=0.9), 1000, None),
        (0.0, Use(), 0, "time"),
        (1.0, Use(input=5, output=5), 0, "tokens"),
        (1.0, Use(cached=10), 0, "tokens"),
        (1.0, Use(cost=1.0), 0, "money"),
        (1.0, Use(), 1001, "crash"),
        (0.0, Use(cost=1.0), 1001, "time"),
    ],
)
def test_the_first_bound_that_is_reached_is_the_cause(
    remaining_s: float, used: Use, disk_bytes: int, ended: str | None
) -> None:
    bounded = order(budget=Budget(time_s=60.0, tokens=10, money=1.0), usage=(READS_TOKENS, READS_COST))
    cause = bound_reached(bounded, remaining_s, used, disk_bytes)
    assert (cause and cause.ended) == ended


def test_the_path_always_leads_to_the_timer_first_and_the_order_prevails_otherwise() -> None:
    environment = agent_environment(order(environment={"PATH": "/venv/bin", "TZ": "CET"}), {"PATH": "/bin"}, {"K": "v"})
    assert environment["PATH"] == "/opt/agent/bin:/venv/bin"
    assert (environment["TZ"], environment["K"]) == ("CET", "v")
    assert not [name for name in environment if "proxy" in name.lower()]
