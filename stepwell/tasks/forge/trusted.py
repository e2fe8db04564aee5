"""Runs test functions of sources that come from our own templates, in this process, without touching `sys.modules`.

Only for text that this package wrote: nothing here limits what the code may do. What a policy wrote is graded in a
sandbox.
"""

import builtins
from collections.abc import Mapping
from types import CodeType, SimpleNamespace


class TrustedTree:
    """The Python modules at the root of a tree, importable by each other."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._modules: dict[str, SimpleNamespace] = {}

    def functions(self, path: str) -> dict[str, object]:
        """The global names of a file after it was run.

        Raises:
            Exception: whatever the file's top level raises.
        """
        return self._run(path, compile(self._files[path], path, "exec"))

    def failures(self, path: str) -> dict[str, str | None]:
        """Each `test_*` function of a file, in order: None if it passed, else its error as `Type: message`."""
        try:
            names = self.functions(path)
        except Exception as error:
            return {"import": describe(error)}
        outcome: dict[str, str | None] = {}
        for name, test in names.items():
            if not name.startswith("test_") or not callable(test):
                continue
            try:
                test()
            except Exception as error:
                outcome[name] = describe(error)
            else:
                outcome[name] = None
        return outcome

    def _run(self, path: str, code: CodeType) -> dict[str, object]:
        names: dict[str, object] = {
            "__name__": path.removesuffix(".py"),
            "__builtins__": {**vars(builtins), "__import__": self._import},
        }
        exec(code, names)
        return names

    def _import(self, name: str, *_: object) -> SimpleNamespace:
        if f"{name}.py" not in self._files:
            raise ModuleNotFoundError(f"No module named {name!r}")
        if name not in self._modules:
            self._modules[name] = SimpleNamespace(**self.functions(f"{name}.py"))
        return self._modules[name]


def describe(error: BaseException) -> str:
    """`Type: message`, or the type alone for an error without a message."""
    message = str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
