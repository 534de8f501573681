"""What a kernel does, from its name and its operator's."""

import re

from causeway.core.codes import COMMUNICATION_KERNEL, MEMORY_KERNEL

COLLECTIVES = ("exchange between GPUs", "collectives")
COPIES_BY_KERNELS = "copies"
WHOLE_GRAPHS = "CUDA graphs traced as a whole"
OTHER = "other kernels"
"""Work whose class no name tells."""
WORK = (
    ("attention", r"flash|fmha|attention|sdpa|paged(?!ata)|mha_|unified_attn|mla_"),
    (
        "convolution",
        r"conv(?!ert)|winograd|wgrad|dgrad|implicit_gemm|cudnn_infer|[sh]cudnn|(?<![N\d])\d+cudnn|im2col|igemm_(?:fwd|bwd|wrw)_",
    ),
    (
        "matrix products",
        r"gemm|gemv|nvjet|cublas|cutlass|xmma|wgmma|mat(?:rix_?)?mul|mul_mat|splitk|mmq|marlin(?!\w*repack)|^cijk"
        r"|(?:^|::|_)(?:mm|bmm|addmm|baddbmm|linear)(?:$|_)",
    ),
    (
        "normalisation",
        # the norm of a vector is a reduction
        r"normali[sz]|(?<=.)(?<!vector)(?<!vector_)(?<!native_)(?<!foreach_)(?<!lp)norm(?!2(?:$|_))|bn_fw|bn_bw",
    ),
    ("softmax", r"softmax"),
    ("embeddings", r"embedding"),
    ("optimizer and foreach", r"adam|sgd|lamb(?!da)|optimizer|multi_tensor_apply|shampoo|adagrad|_foreach|foreach_"),
    ("sampling", r"(?<!up)(?<!down)(?<!re)sampl|argmax|top_?k_?top_?p|top_?p(?![a-z])|multinomial"),
    ("routing of experts", r"topk|moe|expert|permute_tokens"),
    ("gather and scatter", r"gather|scatter|index_|indexselect|index(?:put|add)"),
    ("quantisation", r"quant|fp8|int8|scaled_"),
    ("reductions", r"reduce|sum_|cumsum|scan|norm|nrm2"),
    ("pooling", r"pool"),
    ("changes of layout", r"reformat|transpose|permute|to_?n[cd]*hw"),
    (
        "elementwise",
        r"elementwise|vectorized|unrolled|add_|mul_|(?<!pre)fill|copy|cat|silu|gelu|relu|threshold|triton_poi",
    ),
)
"""Classes of work, the first whose pattern is in the name of the operator or the kernel."""
_SURE = (
    ("attention", re.compile(WORK[0][1], re.IGNORECASE)),
    ("routing of experts", re.compile(r"(?:topk|moe)_?gating", re.IGNORECASE)),
    ("matrix products", re.compile(r"^_?fused_moe|fused_moe_kernel|(?<![a-z])fmoe_|grouped_gemm", re.IGNORECASE)),
    ("embeddings", re.compile(r"embedding", re.IGNORECASE)),
    ("changes of layout", re.compile(r"n[cd]*hw_?to_?n[cd]*hw", re.IGNORECASE)),
    ("reductions", re.compile(r"^norm_?kernel|^__omp_offloading_\w*norm(?!al)", re.IGNORECASE)),
)
"""Work that a kernel's name tells, whatever its operator is called."""
_WORK = tuple((work, re.compile(pattern, re.IGNORECASE)) for work, pattern in WORK)
_LIBRARIES = (
    ("matrix products", re.compile(r"(?:void )?deep_gemm::")),
    ("attention", re.compile(r"(?:void )?cutlass::device_kernel<flash::")),
    ("changes of layout", re.compile(r"(?:void )?genericReformat::")),
)
"""Work of libraries that do one thing, by how a demangled name begins: the short name tells other work, or none."""
EXCHANGE = re.compile(r"all_?to_?all|dispatch|combine|a2a|sendrecv|send_recv", re.IGNORECASE)


def work_of(name: str, operator: str | None, kind: str, demangled: str = "") -> str:
    """Return the class of work that a kernel does, from its short name, its operator's, and its own in full.

    A range that a program names, or an operator of experts, in which all of their work is, says less of it than the
    kernel's own name.

    >>> work_of("nvjet_tst_192x192", "prefill", "compute"), work_of("bn_bw", "aten::cudnn_batch_norm", "compute")
    ('matrix products', 'normalisation')
    """
    if kind == COMMUNICATION_KERNEL:
        return COLLECTIVES[0] if EXCHANGE.search(name) else COLLECTIVES[1]
    if kind == MEMORY_KERNEL:
        return COPIES_BY_KERNELS
    for work, pattern in _LIBRARIES:
        if pattern.match(demangled):
            return work
    _, of_framework, operator = (operator or "").rpartition("::")
    texts = ((operator, _WORK), (name, _WORK))
    says_more = of_framework and not re.search("moe|experts", operator, re.IGNORECASE)
    for text, patterns in ((name, _SURE), *(texts if says_more else texts[::-1])):
        for work, pattern in patterns:
            if pattern.search(text):
                return work
    return OTHER
