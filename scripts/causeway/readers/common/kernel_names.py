"""Kernel names: cleaned, shortened, classified, with ids. Everything follows from the full name alone, so that exports
and formats agree.
"""

import functools
import hashlib
import re
import unicodedata
from collections.abc import Sequence

UNNAMED = "(unnamed kernel)"
"""The name of launches without one; their number stands in the export's issues."""

# AMD's tools mark the kernel descriptor's symbol; the same kernel has no mark, ".kd", " [clone .kd]" or " (.kd)"
# depending on the tool
_VENDOR_SUFFIX = re.compile(r"(?: \[clone \.kd\]| \(\.kd\)|\.kd)+$")
LONGEST_SUFFIX = 100
_OPERATORS = re.compile(r"operator\s*(?:\(\)|<<=?|>>=?|<=>|<=?|>=?|->\*?|\[\])")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\(anonymous class\)")
_OPEN = "<([{"
_CLOSE = ">)]}"
_GENERIC = frozenset({"Kernel", "Kernel2", "kernel", "device_kernel", "kentry", "operator__"})
"""Short names of many kernels: CUTLASS, CK and the like put everything into the template's first argument that is a
type.
"""

_KOKKOS = re.compile(r"(?:cuda|hip)_parallel_launch_(?:local|constant|global)_memory")
"""Kernels of Kokkos, all of which have one of these names: the first argument says which it is."""
_FUNCTOR = re.compile(
    r"(Parallel(?:For|Reduce|Scan))\w*<\s*(?:Kokkos::Impl::CombinedFunctorReducer<\s*)?"
    r"(?:__nv_\w+<[^&]*&\s*\(?)?(?:\w+::)*(\w+)"
)
"""The pattern of Kokkos, and its functor, or the function that a lambda is in."""
_TAG = re.compile(r"Policy<[^>]*?(\w*Tag\w*)")
"""The tag that tells kernels of one functor apart."""

_LAMBDA = re.compile(
    r"(?:\w+ )?(?:\w+(?:<[^()<>]*>)?::)*(?!operator__)(\w+)(?:<[^()]*>)?"
    r"\((?:[^()]|\([^()]*\))*\)(?: const)?::[\[{']+lambda"
)
"""A lambda as the first argument, and the function that it is in: the code that a general kernel of a loop runs."""
_OF_PYTORCH = "at::"
"""The namespace of kernels whose lambdas are in functions of loops, too."""

_LEADING_NUMBERS = re.compile(r"\A(?:(?:\([\w ]+\))?\d+[ul]*\s*,\s*)*")

# The rules of TALP, HolisticTraceAnalysis and TraceLens together, corrected; on the qualified name without template
# arguments and parameters
_COMMUNICATION = re.compile(
    r"ncclKernel|ncclDevKernel|rccl|mscclpp|deep_ep|userbuffers|multimem(?!o)|oneccl"
    r"|(?:^|::)(?:nccl|msccl|nvshmem|rocshmem|ishmem|hccl|cross_device_reduce|quickreduce::|hybrid_ep::|mori::|uccl::"
    r"|pplx::|(?:c10d::)?symmetric_memory::)"
)
"""Libraries: of NVIDIA, AMD, Intel and Microsoft, PyTorch's symmetric memory, Transformer Engine's user buffers,
quickreduce of AMD, and those that exchange the tokens of experts.
"""
_WITHIN_A_DEVICE = (
    "warp", "wave", "wavefront", "lane", "thread", "block", "cta", "simd", "subgroup", "sub_group", "warpgroup",
    "cluster", "grid", "for",
)  # fmt: skip
"""What stands before a collective of one device's own threads (`warpAllReduce`), and `forall_reduce` of loops."""
_COLLECTIVE = re.compile(
    r"(?:(?<![A-Za-z])|(?=[A-Z][a-z]))(?:"  # where a word begins: all_reduce, oneShotAllReduce, but no small_reduce
    + "".join(f"(?<!(?i:{word}))(?<!(?i:{word})_)" for word in _WITHIN_A_DEVICE)
    + r"(?i:all_?reduce|all_?gather|reduce_?scatter|all_?(?:to|2)_?all|send_?recv)|(?i:lamport)|(?i:moea2a)"
    r"|(?i:a2a)(?![A-Za-z]))"
)
"""What a kernel of any library does, by its name: vLLM, SGLang, FlashInfer, TensorRT-LLM, aiter and XLA have their own.
Lamport's flags tell that another device's data has come.
"""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OF_EXPERTS = re.compile(r"_(?:dispatch|combine|notify|barrier)_")
_BETWEEN_DEVICES = re.compile(r"_(?:ep|inter_?node|intra_?node|rdma|send|recv)_")
"""Kernels that bring tokens to their experts and back, of any library: both kinds of words stand in the name, in its
namespaces or itself (`acme::ep::internode::dispatch`, `EpCombineInterNode`). Neither is enough alone: `dispatch` also
chooses an implementation, and `combine` also adds up the parts of one device's attention.
"""
_PHASE_IN_BRACKETS = re.compile(r"\s*\([^()]*\)\s*$")
_EXCHANGES_TOKENS = re.compile(
    r"_(?:(?:mo_?e_|expert_|experts_|ep_|tokens?_)*(?:dispatch|combine)_(?:tokens?_|forward_|backward_|fwd_|bwd_)*)"
)
"""Ranges around launches that say the same; `dispatch(F)` and `combine(B)` say forward and backward."""
_GENERATED = re.compile(r"^triton_[a-z]+_fused_")
"""Kernels that PyTorch's compiler writes bear the names of operators around them; they communicate in none."""
_TEXT = re.compile(r"(?<!:): ")
"""A text rather than a name of C++, in which a colon is one of two."""
_MEMORY = re.compile(
    r"^\[CUDA mem(?:cpy|set)|^Mem(?:cpy|set)\b|^hipMem(?:cpy|set)|^__amd_rocclr_(?:copy|fill)Buffer|^MEMORY_COPY_"
    r"|^Copy(?:Host|Device)To(?:Host|Device)\b|^FillBuffer\b"
)


def unnamed(number: int) -> str:
    """Return the name of a kernel of which only a number is known, so that launches of different kernels stay apart."""
    return f"{UNNAMED[:-1]} {number})"


def is_unnamed(name: str) -> bool:
    """Return whether a name is `UNNAMED`, or made by `unnamed`."""
    return name.startswith(UNNAMED[:-1])


def clean_text(text: str | bytes) -> str:
    """Return text that any table, page or shell can carry: control characters and undecodable bytes become U+FFFD,
    ends are stripped.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if not text.isprintable():
        bad = ("Cc", "Cs", "Co", "Cn")
        text = text.translate(
            {
                ord(c): "\ufffd" if unicodedata.category(c) in bad and c not in "\t\n\r" else " "
                for c in set(text)
                if not c.isprintable()
            }
        )
    return text.strip()


def clean_kernel_name(text: str | bytes | None) -> str:
    """Return a kernel's full name as used everywhere: clean, demangled, without AMD's symbol suffixes; `UNNAMED` if
    there is none.
    """
    name = clean_text(text) if text is not None else ""
    name = (name[:-LONGEST_SUFFIX] + _VENDOR_SUFFIX.sub("", name[-LONGEST_SUFFIX:])).strip()
    return (_demangled(name) if name.startswith("_Z") else name) or UNNAMED


@functools.lru_cache(maxsize=65536)
def _demangled(name: str) -> str:
    """Return what a symbol of the Itanium C++ ABI stands for, the symbol itself if it is none, or one that expands
    without bounds.

    Spelt as libstdc++ does, which PyTorch's profiler and HIP demangle with, so that a kernel has one name whoever
    demangled it.
    """
    from demangle import demangle

    return clean_text(demangle(name, language="itanium", style="gnu"))


def _without_groups(name: str) -> tuple[str, str]:
    """Return the name without anything in brackets, up to its parameter list, and its last template argument list."""
    kept: list[str] = []
    arguments = ""
    opened: list[str] = []
    begin = 0
    for position, char in enumerate(name):
        if char in _OPEN:
            if not opened:
                if char == "(" and kept and "".join(kept).strip():
                    break  # the parameter list ends the qualified name
                begin = position + 1
            opened.append(char)
        elif char in _CLOSE and opened:
            opening = _OPEN[_CLOSE.index(char)]
            if char == ">" and opened[-1] != "<":
                continue  # a comparison or a shift within parentheses: (3 > 2)
            while opening in opened and opened.pop() != opening:
                pass
            if not opened and char == ">":
                arguments = name[begin:position]
        elif not opened:
            kept.append(char)
    return "".join(kept), arguments


@functools.lru_cache(maxsize=65536)
def qualified_name(name: str) -> tuple[str, str]:
    """Return a demangled name's qualified name without return type, template arguments and parameters, and its template
    arguments.

    `void at::native::reduce_kernel<512, 1, X>(X)` gives `at::native::reduce_kernel` and `512, 1, X`.
    """
    if not any(char in name for char in "<(["):
        return name, ""
    plain = _ANONYMOUS.sub("anonymous", _OPERATORS.sub("operator__", name))
    qualified, arguments = _without_groups(plain)
    words = qualified.split()
    while len(words) > 1 and words[-1] in ("const", "noexcept", "volatile", "&", "&&"):
        words.pop()
    return (words[-1] if words else name.strip()), arguments


def short_name(name: str) -> str:
    """Return the last component of a kernel's qualified name, e.g. `reduce_kernel`.

    Where that is the name of many kernels (`cutlass::Kernel<cutlass_80_tensorop_...>`), the short name of the first
    type among the template's arguments follows in brackets, else its namespace comes before it (`gemvx::kernel`).
    Kernels of Kokkos are named after their functor and its tag (`ParallelFor<PairLJCut, TagCompute>`), others that run
    a lambda after the function that it is in (`par_ranged2d_kernel<PdV_kernel>`). A name with a colon before a blank
    is a text, as tables have it (`K1: naive`), and stays.
    """
    if name == UNNAMED or _MEMORY.search(name) or _TEXT.search(name):
        return name
    qualified, arguments = qualified_name(name)
    last = qualified.rstrip(":").rsplit("::", 1)[-1] or qualified
    if _KOKKOS.fullmatch(last) and (functor := _FUNCTOR.search(arguments)):
        tag = _TAG.search(arguments)
        which = [functor[2], *([tag[1]] if tag and tag[1] != functor[2] else [])]
        return f"{functor[1]}<{', '.join(which)}>"
    if not qualified.startswith(_OF_PYTORCH) and (code := _LAMBDA.match(_LEADING_NUMBERS.sub("", arguments))):
        return f"{last}<{code[1]}>"
    if last in _GENERIC:
        first = _LEADING_NUMBERS.sub("", arguments).split(",", 1)[0]
        inner = _without_groups(first)[0].rsplit("::", 1)[-1].strip()
        if re.fullmatch(r"[A-Za-z_]\w{8,}", inner):
            return f"{last}<{inner}>"
        return "::".join(qualified.split("::")[-2:])
    return last or name


def kernel_class(name: str, communication: Sequence[str] = ()) -> str:
    """Return `compute`, `communication` or `memory` for a kernel's full name.

    Names that hold one of `communication` are communication, whatever else they say: the user's choice.

    Sources: the rules of TALP, HolisticTraceAnalysis and TraceLens, corrected, and collectives by what they do. They
    are applied to the qualified name only, so that a compute kernel with a communicator among its template arguments
    stays compute; `hipblasLt*` is compute.
    """
    if any(part in name for part in communication):
        return "communication"
    if _MEMORY.search(name):
        return "memory"
    qualified = qualified_name(name)[0]
    if _COMMUNICATION.search(qualified):
        return "communication"
    does = _COLLECTIVE.search(qualified) or _is_of_experts(qualified)
    return "communication" if does and not _GENERATED.search(qualified) else "compute"


def _words(text: str) -> str:
    """Return the words of a name in lower case, with one `_` before, between and behind them."""
    return f"_{'_'.join(_WORD.findall(text))}_".lower()


def _is_of_experts(qualified: str) -> bool:
    words = _words(qualified)
    return bool(_OF_EXPERTS.search(words) and _BETWEEN_DEVICES.search(words))


def says_communication(range_name: str) -> bool:
    """Return whether the name of a range says that what it launches is communication.

    >>> names = "dispatch(F)", "MoE combine", "all_to_all", "nccl:broadcast", "dispatch_attention", "kernel dispatch"
    >>> [says_communication(name) for name in names]
    [True, True, True, True, False, False]
    """
    if range_name.startswith("nccl:") or _COLLECTIVE.search(range_name):
        return True
    return bool(_EXCHANGES_TOKENS.fullmatch(_words(_PHASE_IN_BRACKETS.sub("", range_name))))


def kernel_id(name: str) -> str:
    """Return the kernel's id in paths: a slug of its short name, at most 40 characters, and ten hex digits of its
    full name's SHA-256.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", short_name(name).lower()).strip("-")[:40].strip("-")
    return f"{slug or 'kernel'}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:10]}"
