"""The first process of a sandbox: runs commands, reads and writes files, lists the work tree and tells what changed.

It runs as process 1 of its own PID namespace by `python -I -S`, standard library only and no import that costs
milliseconds, and answers one request at a time over file descriptor 0, in the frames of `stepwell.sandbox.frames`.
When the other end closes it ends, and the kernel kills whatever else runs in the namespace. Its arguments are those of
`Box`, then the environment of commands, as NAME=VALUE; its own environment is never theirs.

Every command runs in an own session. When it ends, by itself or not, all that it left behind is killed: the state of a
sandbox between two commands is its files. While a command runs, a watch of `WATCH_S` bounds what resource limits do
not: the number of processes when the sandbox belongs to root (whom RLIMIT_NPROC does not bind), the resident memory of
all processes together, and the bytes on disk in the work tree. What a command can overshoot is what it can do in one
such period.
"""

import errno
import os
import resource
import select
import stat
import sys
import time

TYPE_CHECKING = False  # As in `typing`, whose import costs milliseconds; `__future__` would cost a fifth of one.
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Entry = tuple[bytes, bytes, int, bytes]  # Path, letter of the kind, mode, payload.

SIGINT, SIGKILL, SIGPIPE, SIGXFSZ = 2, 9, 13, 25  # `signal` imports `enum`, which costs milliseconds.
WATCH_S = 0.02
DISK_WATCH_S = 0.25
READ_BYTES = 1 << 16
RUNAWAY_FACTOR = 256
"""A command is killed once it has written this many times the output that is kept."""
RESIDENT_FACTOR = 2
"""Resident memory of all processes together, in units of one process's address space."""
DISK_FACTOR = 8
"""Disk used by the work tree, in units of the largest file."""
SPARE_PROCESSES = 16
"""Room that the kernel leaves beyond the bound, be it by a control group or a resource limit: so that the watch ends a
command and says why, whoever the sandbox belongs to."""
DEPTH_LIMIT = 96
ENTRIES_LIMIT = 200_000
IGNORED = (b".git", b"__pycache__", b".pytest_cache")
DIGEST_DOMAIN = b"stepwell/tree\0"  # As in `stepwell.sandbox.tree`, whose digest this process computes too.
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Box:
    """Where the work tree is and what bounds there are, as given on the command line, in this order: the root of the
    work tree, the folder whose bytes on disk are bounded, and those of `stepwell.sandbox.protocol.SandboxLimits`. Where
    the second is another than the first, it is the upper layer of the overlay that the work tree is."""

    def __init__(self, work: str, written: str, memory_bytes: str, processes: str, file_bytes: str) -> None:
        self.work = work.encode()
        self.written = written.encode()
        self.memory_bytes = int(memory_bytes)
        self.processes = int(processes)
        self.file_bytes = int(file_bytes)


class Outside(Exception):
    """A path that leads out of the work tree, or through a link."""


# --- wire -----------------------------------------------------------------------------------------------------------


def take(channel: int, size: int) -> bytes:
    """Exactly `size` bytes; the end of the channel ends this process, and with it the sandbox."""
    parts: list[bytes] = []
    while size:
        chunk = os.read(channel, min(size, 1 << 20))
        if not chunk:
            os._exit(0)
        parts.append(chunk)
        size -= len(chunk)
    return b"".join(parts)


def receive(channel: int) -> list[bytes]:
    """One message: its fields."""
    count = int.from_bytes(take(channel, 4), "big")
    return [take(channel, int.from_bytes(take(channel, 4), "big")) for _ in range(count)]


def send(channel: int, fields: "Sequence[bytes]") -> None:
    """One message, whole."""
    data = bytearray(len(fields).to_bytes(4, "big"))
    for field in fields:
        data += len(field).to_bytes(4, "big")
        data += field
    view = memoryview(data)
    while view:
        view = view[os.write(channel, view) :]


# --- commands -------------------------------------------------------------------------------------------------------


class Output:
    """Head and tail of a stream, and how much lay between."""

    def __init__(self, limit: int) -> None:
        self.head_limit = limit // 2
        self.tail_limit = limit - self.head_limit
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self.head_limit - len(self.head)
        if room > 0:
            self.head += chunk[:room]
            chunk = chunk[room:]
        self.tail += chunk
        if len(self.tail) > 2 * self.tail_limit + READ_BYTES:
            del self.tail[: -self.tail_limit]

    def content(self, note: bytes) -> bytes:
        tail = self.tail[-self.tail_limit :] if self.tail_limit else b""
        dropped = self.total - len(self.head) - len(tail)
        middle = b"\n[... %d bytes left out ...]\n" % dropped if dropped else b""
        return bytes(self.head + middle + tail + note)


def spawn(argv: list[bytes], stdin: int, output: int) -> int:
    """Starts a command in a process group of its own; its pid."""
    actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    return os.posix_spawnp(
        argv[0],
        argv,
        os.environb,
        file_actions=actions,
        setsid=True,
        setsigdef=[SIGPIPE, SIGXFSZ],
    )


def kill_all() -> None:
    """Kills every process of the namespace but this one; a fork under way fails, so one call is enough."""
    try:
        os.kill(-1, SIGKILL)
    except ProcessLookupError:
        return


def reap_all(main: int) -> int:
    """Waits until this process has no children; gives the wait status of `main`."""
    status = 0
    while True:
        try:
            pid, found = os.waitpid(-1, 0)
        except ChildProcessError:
            return status
        if pid == main:
            status = found


def excess(box: Box, disk_due: bool) -> bytes | None:
    """What the processes together use beyond their bounds, as text, or None."""
    page = resource.getpagesize()
    count = 0
    resident = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == "1":
            continue
        count += 1
        try:
            with open(f"/proc/{name}/statm", "rb", buffering=0) as statm:
                resident += int(statm.read(256).split()[1]) * page
        except (FileNotFoundError, ProcessLookupError, IndexError):
            continue
    if count > box.processes:
        return b"more than %d processes" % box.processes
    if resident > RESIDENT_FACTOR * box.memory_bytes:
        return b"more than %d bytes of memory in all processes together" % (RESIDENT_FACTOR * box.memory_bytes)
    if disk_due and disk_use(box.written) > DISK_FACTOR * box.file_bytes:
        return b"more than %d bytes in the work tree" % (DISK_FACTOR * box.file_bytes)
    return None


def disk_use(folder: bytes) -> int:
    """Bytes that everything in a folder takes on disk."""
    return sum(status.st_blocks * 512 for _, status, _ in walk(folder, ()))


def run_command(channel: int, request: list[bytes], box: Box) -> list[bytes]:
    """Runs a command to its end or its limits, and kills whatever it leaves behind."""
    deadline_s = int(request[0]) / 1e6
    output = Output(int(request[1]))
    stdin_data, argv = request[2], request[3:]
    if stdin_data:
        stdin = os.memfd_create("stdin")
        view = memoryview(stdin_data)
        while view:
            view = view[os.write(stdin, view) :]
        os.lseek(stdin, 0, os.SEEK_SET)
    else:
        stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(writer, True)  # Blocking for the command; the flag belongs to this end alone.
    started = time.monotonic()
    try:
        pid = spawn(argv, stdin, writer)
    except OSError as error:
        os.close(reader)
        note = b"%s: %s\n" % (argv[0], os.strerror(error.errno or 0).encode())
        code = 126 if error.errno == errno.EACCES else 127
        return [b"exited", str(code).encode(), b"%d" % ((time.monotonic() - started) * 1e6), note]
    finally:
        os.close(writer)
        os.close(stdin)
    end, note = watch_command(channel, pid, reader, output, started + deadline_s, box)
    kill_all()
    code = os.waitstatus_to_exitcode(reap_all(pid))
    drain(reader, output)
    os.close(reader)
    return [end, str(code).encode(), b"%d" % ((time.monotonic() - started) * 1e6), output.content(note)]


def watch_command(
    channel: int, pid: int, reader: int, output: Output, deadline: float, box: Box
) -> tuple[bytes, bytes]:
    """Drains and watches a command until it ends or has to; gives how it ended and a note for its output."""
    pidfd = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(pidfd, select.POLLIN)
    poll.register(channel, select.POLLHUP | select.POLLRDHUP)
    runaway = RUNAWAY_FACTOR * max(output.head_limit + output.tail_limit, 1024)
    watch_at = time.monotonic() + WATCH_S
    disk_at = watch_at + DISK_WATCH_S
    try:
        while True:
            now = time.monotonic()
            if now >= deadline:
                return b"timeout", b""
            if now >= watch_at:
                found = excess(box, now >= disk_at)
                spent = time.monotonic() - now
                if found:
                    return b"exited", b"\n[killed: %s]\n" % found
                if now >= disk_at:
                    disk_at = now + max(DISK_WATCH_S, 10 * spent)
                watch_at = now + max(WATCH_S, 10 * spent)
            events = dict(poll.poll(max(0.0, min(deadline, watch_at) - now) * 1000))
            if channel in events:
                os._exit(0)
            if pidfd in events:
                return b"exited", b""
            if reader in events:
                if not read_some(reader, output):
                    poll.unregister(reader)
                if output.total > runaway:
                    return b"output_limit", b""
    finally:
        os.close(pidfd)


def read_some(reader: int, output: Output) -> bool:
    """Reads once; False at the end of the stream."""
    try:
        chunk = os.read(reader, READ_BYTES)
    except BlockingIOError:
        return True
    output.add(chunk)
    return bool(chunk)


def drain(reader: int, output: Output) -> None:
    """Reads what lies in the pipe; nobody writes any more."""
    while True:
        try:
            chunk = os.read(reader, READ_BYTES)
        except BlockingIOError:
            return
        if not chunk:
            return
        output.add(chunk)


# --- files ----------------------------------------------------------------------------------------------------------


def open_parent(work: bytes, path: bytes, make: bool) -> tuple[int, bytes]:
    """Descriptor of the folder of `path`, reached from the root of the tree without following a link."""
    parts = path.split(b"/")
    if path.startswith(b"/") or b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        raise Outside(path)
    folder = os.open(work, FOLDER_FLAGS)
    for part in parts[:-1]:
        try:
            if make:
                make_folder(part, folder)
            inner = os.open(part, FOLDER_FLAGS, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and is_link(part, folder):
                raise Outside(path) from error
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder, parts[-1]


def make_folder(name: bytes, parent: int) -> None:
    """A folder, unless it is there; one that is a link or a file is refused later, when it is opened."""
    try:
        os.mkdir(name, 0o755, dir_fd=parent)
    except FileExistsError:
        return


def is_link(name: bytes, folder: int) -> bool:
    """Whether a name is a symbolic link."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def read_regular(name: bytes, folder: int, limit: int) -> bytes | None:
    """Content of a regular file, or None if it is none, cannot be read or is over the limit."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        parts: list[bytes] = []
        while chunk := os.read(file, 1 << 20):
            parts.append(chunk)
        return b"".join(parts)
    finally:
        os.close(file)


def read_file(path: bytes, box: Box) -> list[bytes]:
    """Content of a regular file beneath the work tree."""
    try:
        folder, name = open_parent(box.work, path, make=False)
    except (OSError, Outside):
        return [b"missing"]
    try:
        content = read_regular(name, folder, box.file_bytes)
    finally:
        os.close(folder)
    return [b"missing"] if content is None else [b"ok", content]


def write_file(path: bytes, data: bytes, box: Box) -> list[bytes]:
    """Writes a file beneath the work tree, making folders as needed."""
    try:
        folder, name = open_parent(box.work, path, make=True)
    except Outside:
        return [b"refused", b"it leads out of the work tree or through a link"]
    except OSError as error:
        return [b"refused", os.strerror(error.errno or 0).encode()]
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(name, flags, 0o644, dir_fd=folder)
    except OSError as error:
        reason = b"it is a link" if error.errno == errno.ELOOP else os.strerror(error.errno or 0).encode()
        return [b"refused", reason]
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return [b"refused", b"it is no regular file"]
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        os.ftruncate(file, len(data))  # Last: a file cut to nothing first is flushed to disk when it is closed.
    except OSError as error:
        return [b"refused", os.strerror(error.errno or 0).encode()]
    finally:
        os.close(file)
    return [b"ok"]


def walk(
    root: bytes, ignored: "Sequence[bytes]", missed: "list[bytes] | None" = None
) -> "Iterator[tuple[bytes, os.stat_result, int]]":
    """Yields (path, status, folder descriptor) of all below the root, links not followed, folders before their content.

    The descriptor is open while the consumer holds the item. Bounded in depth and number; `missed` takes the paths that
    were not looked at or into.
    """
    missed = [] if missed is None else missed
    stack: list[tuple[bytes, int, list[bytes] | None]] = [(b"", os.open(root, FOLDER_FLAGS), None)]
    seen = 0
    while stack:
        prefix, folder, names = stack.pop()
        if names is None:
            found = map(os.fsencode, os.listdir(folder))
            names = sorted((name for name in found if name not in ignored), reverse=True)
        if not names or seen >= ENTRIES_LIMIT:
            missed += [prefix + name for name in names]
            os.close(folder)
            continue
        name = names.pop()
        stack.append((prefix, folder, names))
        seen += 1
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            missed.append(prefix + name)
            continue  # Removed meanwhile by a command that still runs.
        path = prefix + name
        yield path, status, folder
        if not stat.S_ISDIR(status.st_mode):
            continue
        if len(stack) >= DEPTH_LIMIT:
            missed.append(path)
            continue
        try:
            stack.append((path + b"/", os.open(name, FOLDER_FLAGS, dir_fd=folder), None))
        except OSError:
            missed.append(path)  # A folder without read permission is listed, its content is not.


class Tree:
    """The work tree, as it is each time that it is asked for.

    Where the work tree is an overlay whose upper layer can be seen, a file that is not in the upper layer is one of the
    lower layers', which nothing inside can write to: it is read once. Neither times nor inode numbers are relied upon.
    """

    def __init__(self, box: Box) -> None:
        self.box = box
        self.lower: dict[bytes, bytes] = {}
        """SHA-256 of the content of files of the lower layers, by path."""
        self.digests: dict[bytes, bytes] = {}
        """The same of every regular file, as the tree was last looked at."""
        self.settled: dict[bytes, bytes] | None = None
        """The same, when the tree was settled."""

    def written(self) -> set[bytes] | None:
        """Paths that are in the upper layer, and so may have changed; None if that cannot be told: then all may."""
        if self.box.written == self.box.work:
            return None
        missed: list[bytes] = []
        try:
            found = {path for path, _, _ in walk(self.box.written, IGNORED, missed)}
        except OSError:
            return None
        return None if missed else found

    def look(self) -> "list[Entry]":
        """All there is, in the order of the walk."""
        import hashlib  # Costs 3 ms: only sandboxes whose tree is listed pay it.

        written, self.digests = self.written(), {}
        entries: list[Entry] = []
        for path, status, folder in walk(self.box.work, IGNORED):
            name = path.rsplit(b"/", 1)[-1]
            letter, payload = b"o", b""
            if stat.S_ISREG(status.st_mode):
                is_lower = written is not None and path not in written
                digest = self.lower.get(path) if is_lower else None
                if digest is None:
                    content = read_regular(name, folder, self.box.file_bytes)
                    digest = None if content is None else hashlib.sha256(content).digest()
                if digest is not None:
                    letter, payload = b"f", digest
                    self.digests[path] = digest
                    if is_lower:
                        self.lower[path] = digest
            elif stat.S_ISLNK(status.st_mode):
                letter, payload = b"l", os.readlink(name, dir_fd=folder)
            elif stat.S_ISDIR(status.st_mode):
                letter = b"d"
            entries.append((path, letter, stat.S_IMODE(status.st_mode), payload))
        return entries

    def listing(self) -> list[bytes]:
        """Fields of four: letter of the kind, mode, path, payload."""
        fields = [b"ok"]
        for path, letter, mode, payload in self.look():
            fields += [letter, b"%o" % mode, path, payload]
        return fields

    def digest(self) -> list[bytes]:
        """The tree's digest by `stepwell.sandbox.tree.digest_of_entries`, here, so that no large listing travels."""
        import hashlib

        digest = hashlib.sha256(DIGEST_DOMAIN)
        for path, letter, mode, payload in sorted(self.look()):
            digest.update(letter)
            for part in (b"%04o" % mode, path, payload):
                digest.update(len(part).to_bytes(8, "big"))
                digest.update(part)
        return [b"ok", digest.digest()]

    def settle(self) -> list[bytes]:
        """Remembers the tree as it is."""
        self.look()
        self.settled = self.digests
        return [b"ok"]

    def changes(self) -> list[bytes]:
        """Paths of regular files whose content differs from what was settled, or that are no regular file now."""
        if self.settled is None:
            return [b"refused"]
        self.look()
        before, now = self.settled, self.digests
        return [b"ok", *(path for path in sorted(before.keys() | now.keys()) if before.get(path) != now.get(path))]


# --- start ----------------------------------------------------------------------------------------------------------


def become_untouchable() -> None:
    """Keeps commands, which have the same user id, from tracing this process, opening its memory, or ending it.

    The kernel keeps from process 1 whatever signal its namespace sends it and it does not handle; SIGINT is the one for
    which Python has a handler of its own.
    """
    import _ctypes  # What `ctypes` stands on, without its 4 ms of import; `signal` imports `enum`.

    pr_set_dumpable, sig_dfl, sig_err = 4, 0, -1
    libc = _ctypes.dlopen("libc.so.6", 0)
    if _ctypes.call_function(_ctypes.dlsym(libc, "prctl"), (pr_set_dumpable, 0, 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) failed")
    if _ctypes.call_function(_ctypes.dlsym(libc, "signal"), (SIGINT, sig_dfl)) == sig_err:
        raise OSError("signal(SIGINT) failed")


def set_limits(box: Box) -> None:
    """Limits that commands inherit. Those of memory come after this process's own start."""
    resource.setrlimit(resource.RLIMIT_AS, (box.memory_bytes, box.memory_bytes))
    processes = box.processes + SPARE_PROCESSES
    resource.setrlimit(resource.RLIMIT_NPROC, (processes, processes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (box.file_bytes, box.file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def main() -> None:
    box = Box(*sys.argv[1:6])
    os.environb.clear()
    os.environb.update(dict(os.fsencode(setting).split(b"=", 1) for setting in sys.argv[6:]))
    os.environb[b"PWD"] = box.work
    os.chdir(box.work)
    null = os.open("/dev/null", os.O_RDWR)  # first: descriptor 1 may be free, and must not become the channel's
    channel = os.dup(0)
    os.dup2(null, 0)
    os.dup2(null, 1)
    if null > 2:
        os.close(null)
    os.umask(0o022)
    home = os.environ["HOME"]
    os.makedirs(home, exist_ok=True)
    become_untouchable()
    set_limits(box)
    tree = Tree(box)
    send(channel, [b"ready"])
    while True:
        operation, *request = receive(channel)
        if operation == b"exec":
            answer = run_command(channel, request, box)
        elif operation == b"read":
            answer = read_file(request[0], box)
        elif operation == b"write":
            answer = write_file(request[0], request[1], box)
        elif operation == b"list":
            answer = tree.listing()
        elif operation == b"digest":
            answer = tree.digest()
        elif operation == b"settle":
            answer = tree.settle()
        elif operation == b"changes":
            answer = tree.changes()
        else:
            answer = [b"unknown operation"]
        send(channel, answer)


if __name__ == "__main__":
    main()
