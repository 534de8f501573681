"""What a kernel is called: the same words on every page."""

import re

from causeway.core.formatting import elided

LONGEST = 48
"""Characters of a kernel's name in a sentence."""
_LIBRARY = re.compile(r"sm\d+_xmma|ampere_|volta_|turing_|hopper_|maxwell_|cutlass_\d")
_TILE = re.compile(r"(?:tilesize|tile)?_?(\d{2,3}x\d{2,3}(?:x\d{1,3})?)")
_LAYOUT = re.compile(r"_([tn]{2})(?:_[tn])?(?:_|$|>)")
_TYPE = re.compile(r"bf16|tf32|f64|f32|f16|i8|fp16|sgemm|hgemm|dgemm")
_CONVOLUTION = re.compile(r"fprop|dgrad|wgrad")
_LIBRARIES = (("cutlass", "CUTLASS"), ("cudnn", "cuDNN"), ("_trt", "TensorRT"), ("cublas", "cuBLAS"))
_TYPES = {"sgemm": "f32", "hgemm": "f16", "dgemm": "f64", "fp16": "f16"}


def matrix_product(name: str) -> str | None:
    """Return a matrix product of a library, or a convolution as one, by its types, layout and tile; None of every
    other kernel.

    >>> matrix_product("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_ffma_kernel__5x_cublas")
    'cuBLAS GEMM f32 TN, tile 64x256x8'
    >>> matrix_product("ampere_sgemm_128x64_tn"), matrix_product("softmax_warp_forward")
    ('cuBLAS GEMM f32 TN, tile 128x64', None)
    >>> matrix_product("sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x16_kernel_cudnn")
    'cuDNN fprop f32, tile 64x64x16'
    """
    low = name.lower()
    tile = _TILE.search(low)
    if "gemm" not in low or tile is None or not _LIBRARY.search(low):
        return None
    kind = _TYPE.search(low)
    of = f" {_TYPES.get(kind[0], kind[0])}" if kind else ""
    layout = _LAYOUT.search(low)
    arrangement = f" {layout[1].upper()}" if layout else ""
    convolution = _CONVOLUTION.search(low)
    what = convolution[0] if convolution else "GEMM"
    library = next((library for key, library in _LIBRARIES if key in low), "cuDNN" if convolution else "cuBLAS")
    return f"{library} {what}{of}{arrangement}, tile {tile[1]}"


def kernel_words(name: str, longest: int = LONGEST, tail: int = 14) -> str:
    """Return what a kernel is called in a sentence: a matrix product by what it is, any other by its short name, cut in
    its middle.
    """
    return matrix_product(name) or elided(" ".join(name.split()), longest, tail=tail)


def demangled_words(name: str) -> str:
    """Return a kernel in words, without return type, namespace, template arguments and parameters."""
    named = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    text = named.split("<")[0].split("(")[0].removeprefix("void ")
    return matrix_product(name) or kernel_words(text.rpartition("::")[2] or name)
