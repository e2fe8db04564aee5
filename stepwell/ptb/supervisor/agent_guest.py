"""The first process of an agent's sandbox: starts the agent's commands, and stops, continues and ends what they start.

Process 1 of its own PID namespace, by `python -I -S`, on the standard library and `guest_init` alone. Frames (see
`stepwell.sandbox.frames`) come and go over file descriptor 0; when the other end closes it ends, and the kernel kills
whatever else runs in the namespace. Requests: `run` (standard input, number of variables, `NAME=VALUE`…, arguments…),
`freeze`, `thaw`, `terminate`. Said by itself: `ready` at the start, with the descriptor of the socket that listens
where the agent's network begins; `exited` with the status of the command; `empty` once nothing is left after
`terminate`. The answers to `freeze` and `thaw` are `frozen` and `thawed`.

The listening socket is the sandbox's, and whoever has its descriptor accepts from it: so the proxy outside serves the
network inside, where there is nothing but loopback, and no byte passes through this process.
"""

import os
import select
import signal
import socket
import sys

from stepwell.sandbox.guest_init import SIGPIPE, SIGXFSZ, become_untouchable, receive, send

TYPE_CHECKING = False  # As in `typing`, which is not needed here.
if TYPE_CHECKING:
    from collections.abc import Iterator

REAP_MS = 100
"""How often processes that lost their parents are reaped, in milliseconds."""
NOT_FOUND = 127
"""Exit status of a command that cannot be started, as of a shell."""


class Guest:
    """What runs inside."""

    def __init__(self, channel: int) -> None:
        self.channel = channel
        self.main: int | None = None
        self.stopped_before: set[tuple[int, int]] = set()
        self.terminating = False

    def run(self, request: "list[bytes]") -> None:
        """Starts the command; there is one at a time."""
        stdin_data, count, *rest = request
        settings, argv = rest[: int(count)], rest[int(count) :]
        os.environb.clear()
        for setting in settings:
            name, _, value = setting.partition(b"=")
            os.environb[name] = value
        stdin = os.memfd_create("stdin")
        view = memoryview(stdin_data)
        while view:
            view = view[os.write(stdin, view) :]
        os.lseek(stdin, 0, os.SEEK_SET)
        try:
            self.main = os.posix_spawnp(
                argv[0],
                argv,
                os.environb,
                file_actions=[(os.POSIX_SPAWN_DUP2, stdin, 0)],
                setsid=True,
                setsigdef=[SIGPIPE, SIGXFSZ],
            )
        except OSError as error:
            os.write(2, b"%s: %s\n" % (argv[0], os.strerror(error.errno or 0).encode()))
            send(self.channel, [b"exited", b"%d" % NOT_FOUND])
        finally:
            os.close(stdin)

    def freeze(self) -> None:
        """Stops everything at once: a fork that is under way fails, and is begun again when its parent goes on."""
        self.stopped_before = set(stopped())
        signal_all(signal.SIGSTOP)
        send(self.channel, [b"frozen"])

    def thaw(self) -> None:
        """Lets go on whatever `freeze` stopped, and not what was stopped before."""
        for pid, started in stopped():
            if (pid, started) not in self.stopped_before:
                signal_one(pid, signal.SIGCONT)
        send(self.channel, [b"thawed"])

    def terminate(self) -> None:
        """Asks everything to end, what is stopped too."""
        self.terminating = True
        signal_all(signal.SIGTERM)
        signal_all(signal.SIGCONT)

    def reap(self) -> None:
        """Takes leave of what has ended, and says so where it matters."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # what loses its parent becomes a child of this process: nothing is left at all
                if self.terminating:
                    self.terminating = False
                    send(self.channel, [b"empty"])
                return
            if pid == 0:
                return
            if pid == self.main:
                self.main = None
                send(self.channel, [b"exited", b"%d" % os.waitstatus_to_exitcode(status)])

    def serve(self) -> None:
        """Until the other end closes."""
        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        requests = {b"freeze": self.freeze, b"thaw": self.thaw, b"terminate": self.terminate}
        while True:
            if poll.poll(REAP_MS):
                operation, *request = receive(self.channel)
                if operation == b"run":
                    self.run(request)
                else:
                    requests[operation]()
            self.reap()


def stopped() -> "Iterator[tuple[int, int]]":
    """Pid and start time of each process but this one that is stopped."""
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as stat:
                fields = stat.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] == b"T":
            yield int(name), int(fields[19])


def signal_all(number: int) -> None:
    """Sends a signal to every process of the namespace but this one; no error if there is none."""
    signal_one(-1, number)


def signal_one(pid: int, number: int) -> None:
    """Sends a signal, unless the process has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def main() -> None:
    work, port = sys.argv[1], int(sys.argv[2])
    os.chdir(work)
    null = os.open("/dev/null", os.O_RDWR)
    channel = os.dup(0)
    os.dup2(null, 0)
    os.close(null)
    os.umask(0o022)
    become_untouchable()
    ready = b"\0\0\0\1\0\0\0\5ready"
    if port:
        listening = socket.create_server(("127.0.0.1", port), backlog=128)
        with socket.socket(fileno=os.dup(channel)) as connection:
            socket.send_fds(connection, [ready], [listening.fileno()])
        listening.close()
    else:
        os.write(channel, ready)
    Guest(channel).serve()
