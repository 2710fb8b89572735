"""Run a command so that the kernel kills it when the thread that started it ends.

A script, not a module: `python -I -S bound_exec.py PARENT_PID COMMAND [ARGUMENT ...]`. It asks Linux for
SIGKILL at the parent's death and then becomes the command, so the command has this script's process id.
Elsewhere it only becomes the command.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Bind this process to its parent, then replace it by the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the kernel knew our wish
        sys.exit("the starting process is gone")
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
