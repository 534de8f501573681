"""Numbers that a compiler puts into kernels' names: of the file, the line, the compiled method, the build.

They change while the kernel stays the same, between two builds of a program and, where each rank compiles for itself,
between the ranks of one run. They are left out where kernels are matched, and nowhere else: a kernel keeps its full
name.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

SCANNED = 20_000
"""Characters of a name that are looked at; names of 100 kB occur."""

Shape = tuple[int | None, ...]
"""Grid and block of a launch."""

_RULES: tuple[tuple[str, str, str], ...] = (
    # what a name holds, the numbers in it, what takes their place
    # Clang and Flang: device and inode of the source in hex, the line of the region
    ("__omp_offloading_", r"(?<=__omp_offloading_)[0-9a-f]+_[0-9a-f]+_|_l\d+(?:_\d+)?(?=_debug__|\b)", ""),
    # NVHPC: function and line of a region of OpenMP, the line of one of OpenACC
    ("nvkernel_", r"_F\d+L\d+_\d+\b", ""),
    ("_gpu", r"_\d+(?=_gpu(?:__red)?\b)", ""),
    # the compilers of GCC and Cray count the regions of a function
    ("omp_fn", r"(?<=omp_fn)[.$_]\d+", ""),
    ("$ck_L", r"(?<=\$ck)_L\d+(?:_\d+)*", ""),
    # Julia counts the methods that it compiles, in a process
    ("julia_", r"_\d+(?=\(|$)", ""),
    ("ptxcall_", r"_\d+(?=\(|$)", ""),
    # PyTorch's compiler counts the kernels of a graph; behind them may stand what Triton specialised for
    ("triton_", r"^(triton_\w*?)_\d+(?=(?:_[0-9dec]*d[0-9dec]*)?$)", r"\1"),
    # nvFuser: fusion, concretisation, runtime and group
    ("nvfuser_", r"(?:_[fcrg]\d+)+\b", ""),
    ("CudaCodeGen::kernel", r"(?<=CudaCodeGen::kernel)\d+", ""),
    # XLA counts the fusions of a module
    ("fusion", r"^(\w*fusion(?:_[a-z]\w*?)?)(?:[._]\d+)+$", r"\1"),
    # nvcc marks what is static by the name of a temporary file, or a hash
    ("tmpxft_", r"(?<=tmpxft)(?:_[0-9a-f]{8}){2}(?:_\d+)?", ""),
    ("_INTERNAL_", r"(?<=_INTERNAL_)[0-9a-f]{8}", ""),
)
_COMPILED = tuple((holds, re.compile(pattern), instead) for holds, pattern, instead in _RULES)
_HASH = re.compile(r"(?<![0-9A-Za-z])(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9A-Za-z])")
"""Eight or more hex digits that stand alone, letters and digits among them: a word has no digits, a size no letters."""
_DIGITS = re.compile(r"([0-9]+)")


def without_build_numbers(name: str) -> str:
    """Return a kernel's name without the numbers that its compiler gave it. Names that agree in this are *candidates*
    for the same kernel.

    >>> without_build_numbers("__omp_offloading_31_18a8104__Z5relaxPdS_i_l42")
    '__omp_offloading__Z5relaxPdS_i'
    >>> without_build_numbers("triton_poi_fused_add_3"), without_build_numbers("copy_128")
    ('triton_poi_fused_add', 'copy_128')
    """
    text = name[:SCANNED]
    for holds, pattern, instead in _COMPILED:
        if holds in text:
            text = pattern.sub(instead, text)
    return _HASH.sub("#", text) + name[SCANNED:]


def in_build_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of the numbers in them, by which a compiler counts."""
    return sorted(names, key=_text_and_numbers)


def _text_and_numbers(name: str) -> tuple[list[tuple[int, str]], str]:
    parts = _DIGITS.split(name[:SCANNED])  # text and numbers in turn
    return [(int(part), "") if index % 2 and len(part) < 20 else (-1, part) for index, part in enumerate(parts)], name


def names_of_one_kernel(exports: Sequence[Mapping[str, Iterable[Shape]]]) -> dict[str, str]:
    """Return which kernels of a run, in exports of several builds, are one, though their names differ in numbers of
    the build.

    Exports that have such a name in common are of one build: in these, other numbers are other kernels. Between builds,
    as many kernels as fall on one name without the numbers are the same in the order of their numbers; if there are
    several, their grids and blocks must agree, too. Else each stays a kernel of its own.

    Parameters
    ----------
    exports : sequence of mapping of str to iterable of Shape
        Full names of the kernels of each export, with their grids and blocks.

    Returns
    -------
    dict of str to str
        By full name, only where it is another one: the first, in the order of text, of the names of its kernel. The
        order of the exports does not matter.
    """
    stripped: dict[str, str] = {}
    build_of: dict[str, int] = {}
    builds = list(range(len(exports)))
    for number, export in enumerate(exports):
        for name in export:
            if name not in stripped:
                stripped[name] = without_build_numbers(name)
            if stripped[name] != name:
                other = build_of.setdefault(name, number)
                builds[_root(builds, number)] = _root(builds, other)
    kernels: dict[str, dict[int, dict[str, set[Shape]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    for number, export in enumerate(exports):
        for name, shapes in export.items():
            if stripped[name] != name:
                kernels[stripped[name]][_root(builds, number)][name] |= set(shapes)
    renamed: dict[str, str] = {}
    for by_build in kernels.values():
        columns = [[(name, of_build[name]) for name in in_build_order(of_build)] for of_build in by_build.values()]
        if len(columns) < 2 or len({len(column) for column in columns}) > 1:
            continue
        rows = list(zip(*columns, strict=True))
        if len(rows) > 1 and any(shapes != row[0][1] for row in rows for _, shapes in row):
            continue
        for row in rows:
            first = min(name for name, _ in row)
            renamed |= {name: first for name, _ in row if name != first}
    return renamed


def _root(builds: list[int], number: int) -> int:
    """Return the export that stands for all of one build."""
    while builds[number] != number:
        builds[number] = builds[builds[number]]
        number = builds[number]
    return number
