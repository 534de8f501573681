"""One small export of every layout that is read, with a kernel's name of the caller's choice and a secret in every
place of the layout that holds environments, command lines, host names, paths or outputs.

`LAYOUTS[name](folder, kernel, rows)` writes it into a folder and returns its path; `SECRET` must never come out again.
"""

from layouts import amd, nvidia, plain, pytorch
from layouts.basics import FAMILY, LAYOUTS, LINES, WITHOUT_SECRET
from layouts.rocprofv3_samples import SECRET

__all__ = ["FAMILY", "LAYOUTS", "LINES", "SECRET", "WITHOUT_SECRET", "amd", "nvidia", "plain", "pytorch"]
