"""What of an R2E image the agent must not see, as data: paths to hide, and commands to run before it comes.

The images hold the hidden tests, the command that runs them, and a repository with every commit of its future, the
solution's included. What lies in the work tree is removed by the commands; what lies outside, where a sandbox writes
nothing, is hidden by mounts. Neither is for grading, which needs the image as it is.
"""

from dataclasses import dataclass

from stepwell.sandbox.protocol import ExecEnd, Sandbox, SandboxError
from stepwell.tasks.r2e.expected import TESTS_FOLDER
from stepwell.tasks.r2e.image_run import WORK

COMMAND_TIMEOUT_S = 300.0
"""Of one command: a large repository is written anew."""

HIDDEN = (f"/{TESTS_FOLDER}", f"/root/{TESTS_FOLDER}", "/root/dataset", "/run_tests.sh", "/root/run_tests.sh")
"""Folders and files: something empty is mounted over each that the image has."""
BUILDERS_FILES = (
    *("execution_result.json", "parsed_commit.json", "modified_files.json", "modified_entities.json"),
    *("syn_issue.json", "expected_test_output.json"),
)
"""What the images' builder writes into the repository's folder while it makes an image."""

_REMOVE = f"""
cd "$1" || exit 1
for name in {TESTS_FOLDER} {" ".join(BUILDERS_FILES)}; do
  rm -rf "$name" 2> /dev/null && continue
  # What something empty is mounted over cannot be removed, and need not be.
  if [ -d "$name" ]; then left=$(ls -A "$name"); else left=$(cat "$name"); fi
  [ -z "$left" ] || {{ echo "$name cannot be removed"; exit 1; }}
done
find . -name .venv -prune -o -name .pytest_cache -prune -exec rm -rf {{}} + || exit 1
find . -name .venv -prune -o -name run_tests.sh -type f -print | while read -r script; do
  if grep -q {TESTS_FOLDER} "$script"; then rm -f "$script" || exit 1; fi
done || exit 1
find . -name .venv -prune -o -name run_tests.sh -type l -exec rm -f {{}} +
"""
_FORGET = """
cd "$1" || exit 1
[ -e .git ] || exit 0
command -v git > /dev/null || { find . -name .venv -prune -o -name .git -prune -exec rm -rf {} +; exit; }
HOME=$(mktemp -d) || exit 1
export HOME GIT_CONFIG_NOSYSTEM=1
trap 'rm -rf "$HOME"' EXIT
printf '[safe]\\n\\tdirectory = *\\n' > "$HOME/.gitconfig"
tag=$(git describe --tags --abbrev=0 HEAD 2> /dev/null)
find . -name .venv -prune -o -name .git -prune -exec rm -rf {} + || exit 1
git init -q . || exit 1
mkdir -p .git/info && printf '%s\\n' .venv > .git/info/exclude || exit 1
git config core.autocrlf false
git config core.hooksPath /dev/null
git config gc.auto 0
git config core.fsync none
export GIT_AUTHOR_NAME=base GIT_AUTHOR_EMAIL=base@localhost GIT_AUTHOR_DATE='2020-01-01T00:00:00Z'
export GIT_COMMITTER_NAME=base GIT_COMMITTER_EMAIL=base@localhost GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git add -A . > /dev/null 2>&1 || exit 1
git commit -q --allow-empty --no-verify -m 'The repository as the task begins' || exit 1
if [ -n "$tag" ]; then git tag "$tag" || exit 1; fi
"""


@dataclass(frozen=True)
class Hygiene:
    """What is done to a fresh sandbox of an image before an agent gets it."""

    hidden: tuple[str, ...]
    """Absolute paths; something empty stands in the place of each that the image has."""
    commands: tuple[tuple[str, ...], ...]
    """Run inside, in order, each of which must exit with 0."""


def hygiene(work: str = WORK) -> Hygiene:
    """For an image whose repository is at `work`.

    The repository is made anew with one commit, of the tree as it is: its refs, reflogs and objects are gone, and those
    of its submodules, whose files are in the commit. The last tag before it stays, on that commit, since some packages
    read their version from there. Nothing is flushed to disk, which would take git longer than all else.
    """
    remove, forget = (("/bin/sh", "-c", script, "hygiene", work) for script in (_REMOVE, _FORGET))
    return Hygiene(HIDDEN, (remove, forget))


async def clean(sandbox: Sandbox, cleaning: Hygiene) -> None:
    """Runs the commands in a fresh sandbox, whose work tree then counts as it is as the one that the agent was given.

    Raises:
        SandboxError: one failed; the agent must not get the sandbox.
    """
    for command in cleaning.commands:
        result = await sandbox.exec(command, timeout_s=COMMAND_TIMEOUT_S)
        if result.end is not ExecEnd.EXITED or result.returncode != 0:
            said = result.output[-500:].decode(errors="replace").strip()
            raise SandboxError(f"the image could not be cleaned ({result.end}, status {result.returncode}): {said!r}")
    await sandbox.settle()
