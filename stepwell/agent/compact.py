"""The compact tool set: short actions for a small policy, over trees of a few Python modules.

    view            the modules, each line under a number that runs on from module to module
    view NAME       the function or class of this name alone, numbered the same
    view PATH       one file as it is
    sub L7 < <=     in line 7, replaces the token `<` by `<=`; a fourth word picks among several (from 1);
                    texts with spaces are written `sub L7 a - b => b - a`
    test            runs the visible tests
    done            ends the episode

Tokens are those of Python, so `sub L7 n m` leaves `name` alone. Numbers stay valid, as no action adds or removes lines.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from stepwell.agent.protocol import Action, Observation
from stepwell.sandbox.protocol import ExecEnd, Sandbox
from stepwell.tasks.task import Task

COMPACT_MANUAL = """\
Repair the repository. Answer each turn with one action:
view | view FUNCTION | view PATH | sub L<line> <old token> <new token> [which] | sub L<line> <old> => <new>
| test | done"""
"""System prompt for a policy that was not trained on these tools."""

TEST_TIMEOUT_S = 10.0
_LONGEST_LINE = 120
_LEXEME = re.compile(
    r"""[A-Za-z_]\w*|\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\*\*=?|//=?|<<|>>|->|:=|[-+*/%<>=!&|^@]=|\S"""
)
_SUB = re.compile(r"sub L(\d{1,6}) (\S+) (\S+)(?: (\d{1,3}))?")
_SUB_SPACED = re.compile(r"sub L(\d{1,6}) (\S.*?) => (\S.*)")
_VIEW = re.compile(r"view(?: (\S+))?")
_RUN_TESTS = """\
import runpy, sys
sys.path.insert(0, ".")
try:
    for path in sys.argv[1:]:
        for name, test in list(runpy.run_path(path).items()):
            if name.startswith("test_") and callable(test):
                test()
except Exception as error:
    print("failed:", f"{type(error).__name__}: {error}".splitlines()[0][:100])
else:
    print("passed")
"""


@dataclass(frozen=True)
class NumberedLine:
    """A line of a module, under the number by which actions name it."""

    path: str
    row: int
    """Index in its file, from 0."""
    number: int
    """Across modules, from 1."""
    text: str


def visible_tests(task: Task) -> list[str]:
    """Paths of the visible test files, sorted."""
    return sorted(path for path in task.files if _is_test(path))


def modules(task: Task) -> list[str]:
    """Paths of the Python files that are no tests, sorted: what actions can edit."""
    return sorted(path for path in task.files if path.endswith(".py") and not _is_test(path))


def visible_test_argv(task: Task) -> list[str]:
    """Command that runs the visible tests and prints `passed`, or `failed:` and the first error."""
    return ["python3", "-S", "-c", _RUN_TESTS, *visible_tests(task)]


def find_token(line: str, old: str) -> list[tuple[int, int]]:
    """Where the Python tokens of `old` occur one after the other in `line`: start and end offsets, left to right."""
    wanted = [match[0] for match in _LEXEME.finditer(old)]
    found = list(_LEXEME.finditer(line))
    return [
        (found[at].start(), found[at + len(wanted) - 1].end())
        for at in range(len(found) - len(wanted) + 1)
        if [match[0] for match in found[at : at + len(wanted)]] == wanted
    ]


def lexemes(text: str) -> list[str]:
    """Python tokens of one line, without the spaces between them."""
    return _LEXEME.findall(text)


def numbered(files: dict[str, str]) -> list[NumberedLine]:
    """Every line of some modules, in the order of their paths."""
    lines: list[NumberedLine] = []
    for path, source in sorted(files.items()):
        for row, text in enumerate(source.removesuffix("\n").split("\n")):
            lines.append(NumberedLine(path, row, len(lines) + 1, text))
    return lines


class CompactTools:
    """`ToolSet` of short actions. Malformed actions are answered by one short line."""

    name = "compact"

    def __init__(self, manual: str = "") -> None:
        """Args:
        manual: the system prompt; empty for a policy that learned the tools from demonstrations.
        """
        self._manual = manual

    def system_prompt(self) -> str:
        """What the policy is told of the tools."""
        return self._manual

    def parse(self, text: str) -> Action:
        """The action that a turn's text asks for."""
        text = text.strip()
        if text in ("test", "done"):
            return Action(text, {})
        if match := _VIEW.fullmatch(text):
            return Action("view", {"what": match[1]} if match[1] else {})
        if match := _SUB_SPACED.fullmatch(text):
            return Action("sub", {"line": match[1], "old": match[2], "new": match[3]})
        if match := _SUB.fullmatch(text):
            which = {"which": match[4]} if match[4] else {}
            return Action("sub", {"line": match[1], "old": match[2], "new": match[3], **which})
        return Action("invalid", {"text": text[:_LONGEST_LINE]})

    async def run(self, action: Action, sandbox: Sandbox, task: Task) -> Observation:
        """Carries the action out; only the sandbox's own failure raises (`SandboxError`)."""
        match action.tool:
            case "view" if action.arguments.get("what") in task.files:
                return Observation(await _view_file(action.arguments["what"], sandbox))
            case "view":
                lines = numbered(await _read_modules(sandbox, task))
                what = action.arguments.get("what")
                shown = lines if what is None else _definition(lines, what)
                return Observation(_listing(shown) if shown else f"error: no {what or 'modules'}")
            case "sub":
                return Observation(await _substitute(action.arguments, sandbox, task))
            case "test":
                return Observation(await _run_tests(sandbox, task))
            case "done":
                return Observation("", finished=True)
            case _:
                return Observation("error: no such action")

    async def shell_digest(self, sandbox: Sandbox) -> str:
        """Nothing is kept outside the work tree."""
        return ""


async def _read_modules(sandbox: Sandbox, task: Task) -> dict[str, str]:
    """Modules that are there and are text; a policy with other tools may have removed some."""
    files: dict[str, str] = {}
    for path in modules(task):
        try:
            files[path] = (await sandbox.read_file(path)).decode("utf-8")
        except (FileNotFoundError, UnicodeDecodeError):
            continue
    return files


def _definition(lines: list[NumberedLine], name: str) -> list[NumberedLine]:
    """The lines of every top-level function or class of a name: from its head to the next line at the margin."""
    head = re.compile(rf"(?:async def|def|class) {re.escape(name)}\b")
    shown: list[NumberedLine] = []
    inside = ""
    for line in lines:
        if line.text[:1].strip() or line.path != inside:
            inside = line.path if head.match(line.text) else ""
        if inside:
            shown.append(line)
    return shown


def _listing(lines: list[NumberedLine]) -> str:
    """Numbered lines under the paths of their modules; blank lines keep their number and are left out."""
    parts: list[str] = []
    path = ""
    for line in lines:
        if line.path != path:
            path = line.path
            parts.append(f"# {path}")
        if line.text.strip():
            parts.append(f" L{line.number} {line.text}")
    return "\n".join(parts)


async def _view_file(path: str, sandbox: Sandbox) -> str:
    try:
        return (await sandbox.read_file(path)).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return f"error: no {path}"


async def _substitute(arguments: dict[str, str], sandbox: Sandbox, task: Task) -> str:
    files = await _read_modules(sandbox, task)
    number, old, new = int(arguments["line"]), arguments["old"], arguments["new"]
    lines = numbered(files)
    if not 1 <= number <= len(lines):
        return f"error: no line L{number}"
    line = lines[number - 1]
    spans = find_token(line.text, old)
    which = int(arguments.get("which", "1"))
    if not spans:
        return f"error: no {old} in L{number}"
    if len(spans) > 1 and "which" not in arguments:
        return f"error: {len(spans)} times {old} in L{number}"
    if not 1 <= which <= len(spans):
        return f"error: {len(spans)} times {old} in L{number}"
    start, end = spans[which - 1]
    text = line.text[:start] + new + line.text[end:]
    rows = files[line.path].split("\n")
    rows[line.row] = text
    await sandbox.write_file(line.path, "\n".join(rows).encode("utf-8"))
    return f" L{number} {text}"


async def _run_tests(sandbox: Sandbox, task: Task) -> str:
    if not visible_tests(task):
        return "error: no visible tests"
    result = await sandbox.exec(visible_test_argv(task), timeout_s=TEST_TIMEOUT_S)
    if result.end is not ExecEnd.EXITED:
        return f"failed: {result.end.value}"
    lines = result.output.decode("utf-8", errors="replace").splitlines()
    return lines[-1][:_LONGEST_LINE] if lines else f"failed: exit {result.returncode}"


def _is_test(path: str) -> bool:
    pure = PurePosixPath(path)
    return pure.suffix == ".py" and (pure.parts[0] == "tests" or pure.name.startswith("test_"))
