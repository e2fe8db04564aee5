"""Network policy of a trial: which hosts its agent may reach, held by a proxy that logs every request."""

from stepwell.ptb.network.passage import LoggedRequest
from stepwell.ptb.network.policy import HostRule, NetworkPolicy, Verdict

__all__ = ["HostRule", "LoggedRequest", "NetworkPolicy", "Verdict"]
