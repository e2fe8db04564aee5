"""Environment audit: proof, task by task, that the gold patch passes, that doing nothing fails, and that both do each
time; and what differs between two machines."""

from stepwell.tasks.audit.compare import Comparison, compare
from stepwell.tasks.audit.report import AuditedTask, AuditReport, Observation
from stepwell.tasks.audit.run import audit_tasks

__all__ = ["AuditReport", "AuditedTask", "Comparison", "Observation", "audit_tasks", "compare"]
