"""What a kernel is called and what it does, from its name: the same words on every page."""

import re

from causeway.core.codes import COMMUNICATION_KERNEL
from causeway.core.formatting import elided

LONGEST = 48
"""Characters of a kernel's name in a sentence."""
_TILE = re.compile(r"(?:tilesize|tile)?_?(\d{2,3}x\d{2,3}(?:x\d{1,3})?)")
_LAYOUT = re.compile(r"_([tn]{2})(?:_[tn])?(?:_|$)")
_TYPE = re.compile(r"bf16|tf32|f64|f32|f16|i8|fp16|sgemm|hgemm|dgemm")
COLLECTIVES = ("exchange between GPUs", "collectives")
OTHER = "other kernels"
"""Work whose class no name tells."""
WORK = (
    ("attention", r"flash|fmha|attention|sdpa|paged|mha_|unified_attn|mla_"),
    ("convolution", r"conv(?!ert)|winograd|wgrad|dgrad|implicit_gemm|cudnn_infer|im2col"),
    (
        "matrix products",
        r"gemm|gemv|nvjet|cublas|cutlass|xmma|wgmma|matmul|mul_mat|(?:^|::|_)(?:mm|bmm|addmm|baddbmm|linear)(?:$|_)|^cijk"
        r"|splitk|mmq|tinygemm",
    ),
    ("normalisation", r"norm|bn_fw|bn_bw|batchnorm"),
    ("softmax", r"softmax"),
    ("optimizer and foreach", r"adam|sgd|lamb(?!da)|optimizer|multi_tensor_apply|shampoo|adagrad|foreach"),
    ("routing of experts", r"topk|moe|expert|permute_tokens"),
    ("sampling", r"(?<!up)(?<!down)(?<!re)sampl|argmax|top_p|multinomial"),
    ("embeddings, gather and scatter", r"embedding|gather|scatter|index_|indexselect|index(?:put|add)"),
    ("quantisation", r"quant|fp8|int8|scaled_"),
    ("reductions", r"reduce|sum_|cumsum|scan"),
    ("pooling", r"pool"),
    ("elementwise", r"elementwise|vectorized|unrolled|add_|mul_|fill|copy|cat|silu|gelu|relu|threshold|triton_poi"),
)
"""Classes of work, the first whose pattern is in the name of the operator or the kernel."""
_SURE = (("attention", re.compile(WORK[0][1], re.IGNORECASE)),)
"""Work that a kernel's name tells, whatever its operator is called."""
_WORK = tuple((work, re.compile(pattern, re.IGNORECASE)) for work, pattern in WORK)
EXCHANGE = re.compile(r"all_?to_?all|dispatch|combine|a2a|sendrecv|send_recv", re.IGNORECASE)


def kernel_words(name: str) -> str:
    """Return what a kernel is called: a matrix product of a library by its types, layout and tile, any other by its
    short name.

    >>> kernel_words("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_ffma_kernel__5x_cublas")
    'cuBLAS GEMM f32 TN, tile 64x256x8'
    >>> kernel_words("ampere_sgemm_128x64_tn"), kernel_words("softmax_warp_forward")
    ('cuBLAS GEMM f32 TN, tile 128x64', 'softmax_warp_forward')
    """
    text = " ".join(name.split())
    low = text.lower()
    known = "gemm" in low and re.search(r"sm\d+_xmma|ampere_|volta_|turing_|hopper_|maxwell_|cutlass_\d", low)
    tile = _TILE.search(low)
    if known and tile:
        kind = _TYPE.search(low)
        types = {"sgemm": "f32", "hgemm": "f16", "dgemm": "f64", "fp16": "f16"}
        of = f" {types.get(kind[0], kind[0])}" if kind else ""
        layout = _LAYOUT.search(low)
        library = "CUTLASS" if "cutlass" in low else "cuBLAS"
        return f"{library} GEMM{of}{f' {layout[1].upper()}' if layout else ''}, tile {tile[1]}"
    return elided(text, LONGEST, tail=14)


def work_of(name: str, operator: str | None, kind: str) -> str:
    """Return the class of work that a kernel does.

    >>> work_of("nvjet_tst_192x192", None, "compute"), work_of("bn_bw", "aten::cudnn_batch_norm", "compute")
    ('matrix products', 'normalisation')
    """
    if kind == COMMUNICATION_KERNEL:
        return COLLECTIVES[0] if EXCHANGE.search(name) else COLLECTIVES[1]
    operator = (operator or "").rpartition("::")[2]
    for text, known in ((name, _SURE), (operator, _WORK), (name, _WORK)):
        for work, pattern in known:
            if pattern.search(text):
                return work
    return OTHER
