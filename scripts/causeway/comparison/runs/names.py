"""Kernel names without what changes from build to build or from one GPU to the next."""

import re

from causeway.core.names.build_numbers import SCANNED, without_build_numbers

ARCHITECTURE = re.compile(
    r"(?<![a-z])(?:sm_?\d{2,3}[a-z]?|compute_\d{2,3}[a-z]?|gfx[0-9a-f]{3,4}|maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell)(?![a-z])"
    r"|(?<=cutlass_)\d{2,3}(?=_)|(?<=cutlass)\d{2,3}(?=_)"
)
LAMBDA = re.compile(r"\{lambda[^{}]*\}(?:#\d+)?|\[lambda[^\[\]]*\](?:::operator ?\(\))?|\$_\d+|lambda_?\d+|ut\d+_")
ADDRESS = re.compile(r"0x[0-9a-f]+")
ANONYMOUS = re.compile(r"\(anonymous namespace\)|\{anonymous\}|<unnamed>|_global__n__[0-9a-f_]+|::_n_[0-9a-f_]+")
SUFFIX = re.compile(r"\s*\[clone[^\]]*\]|\.(?:kd|isra|part|constprop|cold)(?:\.\d+)*$")
LIBRARY = re.compile(r"(?<=::)_?(?:cudnn|miopen)_")
"""A maker's library in the name of an operator of PyTorch."""
OPEN = "<("
CLOSE = ">)"


def _outside(text: str) -> str:
    """Return the characters of a C++ name outside template arguments and parameter lists; brackets that do not match
    end the search.
    """
    kept = []
    depth = 0
    for position, character in enumerate(text):
        if character in OPEN:
            depth += 1
        elif character in CLOSE and not (character == ">" and text[position - 1 : position] == "-"):
            depth -= 1
            if depth < 0:
                return text
        elif depth == 0:
            kept.append(character)
    return "".join(kept) if depth == 0 else text


def normalised(name: str) -> str:
    """Return what stays of a kernel's name over builds and GPUs.

    Template arguments, parameters, return type, clone suffixes, addresses and what a compiler numbers
    (`without_build_numbers`) are left out; numbers of lambdas, and
    names of architectures (`sm80`, `hopper`, `gfx90a`), are replaced by a placeholder. Two names that agree in this are
    *candidates* for the same kernel.
    """
    text = " ".join(without_build_numbers(name[:SCANNED]).lower().split())
    text = ANONYMOUS.sub("anonymous", SUFFIX.sub("", text))
    text = ADDRESS.sub("@", LAMBDA.sub("lambda", text))
    text = _outside(text).strip()
    text = text.rsplit(" ", 1)[-1]  # without the return type
    return ARCHITECTURE.sub("arch", text)


def without_library(operator: str) -> str:
    """Return an operator's name without the library of the device's maker.

    >>> without_library("aten::miopen_batch_norm"), without_library("aten::cudnn_batch_norm")
    ('aten::batch_norm', 'aten::batch_norm')
    """
    return LIBRARY.sub("", operator)
