"""Ends a process whose own event loop hangs, where nobody else would: in a cluster a worker is watched from outside
only by its lease, which tells that it hangs and does not end it."""

import faulthandler
import os
import threading
import time

LOOP_HUNG_S = 60
"""Longer than the patience of `stepwell run`, which ends its workers itself."""
HUNG_STATUS = 70


class Watchdog:
    """Watches the loop that calls `turned` every second.

    Args:
        hung_s: seconds of silence after which the process ends. Counted in looks, one a second, so that a process that
            was stopped and let go again is not taken for one that hangs.
    """

    def __init__(self, hung_s: int = LOOP_HUNG_S) -> None:
        self._hung_s = hung_s
        self._turns = 0

    def start(self) -> None:
        """Begins to watch, in a thread that ends with the process."""
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def turned(self) -> None:
        """The loop is alive."""
        self._turns += 1

    def _watch(self) -> None:
        seen, silent_s = self._turns, 0
        while silent_s < self._hung_s:
            time.sleep(1.0)
            silent_s = silent_s + 1 if self._turns == seen else 0
            seen = self._turns
        faulthandler.dump_traceback(all_threads=True)
        os._exit(HUNG_STATUS)
