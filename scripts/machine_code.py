# SPDX-License-Identifier: Apache-2.0
"""Compiles all kernels when a wheel is built, for processors of a kind, so that nobody waits for it later. hatchling
calls the hook; an editable install, whose sources change, compiles when it runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = "machine_code"


def compile_for(processor: str, base: Path) -> None:
    """Compile all kernels for a processor; numba was told of it by the environment."""
    from anonfit.runtime import compiling

    def own(part: str) -> compiling.CodeFolder:
        place = compiling.place(base, processor, part)
        place.mkdir(parents=True, exist_ok=True)
        return compiling.CodeFolder(place, processor)

    compiling.own, compiling.brought = own, lambda _: None
    from anonfit.release.engine import compile_all

    compile_all()
    if not list(base.rglob("*.nbc")):
        raise RuntimeError("numba compiled nothing.")


def compile_into(sources: Path, base: Path) -> None:
    """Compile for all processors that this one can run the code of, side by side."""
    sys.path.insert(0, str(sources))
    from anonfit.runtime.compiling import processors

    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    inherited["PYTHONPATH"] = os.pathsep.join(sys.path)  # also of an environment that is made for the build only
    running = []
    for processor in processors():
        environment = inherited | {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""}
        words = [sys.executable, "-B", __file__, processor, str(base)]
        running.append(subprocess.Popen(words, env=environment))  # noqa: S603 - this file
    if {process.wait() for process in running} != {0}:
        raise RuntimeError("the kernels could not be compiled; what is above says why.")
    for path in [*base.rglob("*.nbi"), *base.rglob("*.nbc")]:
        path.chmod(0o644)


if __name__ == "__main__":
    compile_for(sys.argv[1], Path(sys.argv[2]))
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class MachineCode(BuildHookInterface):  # type: ignore[type-arg]
        """Puts machine code into a wheel, which is then one for this Python and kind of machine."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Called before a wheel is built."""
            if version == "editable":
                return
            self.folder = tempfile.TemporaryDirectory()
            compile_into(Path(self.root) / "src", Path(self.folder.name))
            build_data["force_include"][self.folder.name] = f"anonfit/{FOLDER}"
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

        def finalize(self, *_: Any) -> None:
            """Called after it."""
            if hasattr(self, "folder"):
                self.folder.cleanup()
