"""An agent of a trial under a leased supervisor: a process of its own, which outlives the worker that started it."""

from stepwell.ptb.supervisor.attended import AgentHostDied, AgentNotStarted, Attended, end_all, start, take_up
from stepwell.ptb.supervisor.order import HOME, WORK, AgentOrder, Budget, Limits, Mount, Reprompt
from stepwell.ptb.supervisor.records import AgentEnd, AgentStatus, Ended, LimitSeen, Phase
from stepwell.ptb.supervisor.rules import LimitKind, LimitRule, Prices, UsageRule
from stepwell.ptb.supervisor.sandbox import PROXY_PORT, python_environment

__all__ = [
    "HOME",
    "PROXY_PORT",
    "WORK",
    "AgentEnd",
    "AgentHostDied",
    "AgentNotStarted",
    "AgentOrder",
    "AgentStatus",
    "Attended",
    "Budget",
    "Ended",
    "LimitKind",
    "LimitRule",
    "LimitSeen",
    "Limits",
    "Mount",
    "Phase",
    "Prices",
    "Reprompt",
    "UsageRule",
    "end_all",
    "python_environment",
    "start",
    "take_up",
]
