"""Every activity beats while it works, so that none waits for its deadline when its worker is gone."""

from typing import Any

from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.heartbeat import beating


class BeatingInterceptor(Interceptor):
    """Beats for each activity that is declared with a heartbeat, from before its first line to after its last."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See Interceptor."""
        return _Beating(next)


class _Beating(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        async with beating():
            return await super().execute_activity(input)
