"""Run a command that the kernel kills when the thread that started it ends.

A script, not a module: `python -I -S bound_exec.py PARENT_PID COMMAND [ARGUMENT ...]`. On Linux the script asks the
kernel for SIGKILL at the parent's death and then becomes the command, so the command has this script's process id. On
other systems the script only becomes the command.
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
    if os.getppid() != parent:  # the parent died before prctl took effect
        sys.exit("the starting process is gone")
    os.execvp(command[0], command)  # noqa: S606


if __name__ == "__main__":
    main()
