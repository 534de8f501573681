"""The kernels of the experiments: each has a time that one thing decides, which its grid does not show."""

import cupy
import numpy as np
import torch

BLOCKS = 1056
THREADS = 256
SOURCE = r"""
extern "C" __global__ void read_values(const float4* values, long long count, float* sums) {
    float sum = 0;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        float4 value = values[at];
        sum += value.x + value.y + value.z + value.w;
    }
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void read_others(const float4* values, long long count, float* sums) {
    float sum = 0;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        float4 value = values[at];
        sum += value.x * value.y + value.z * value.w;
    }
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void multiply_add(float* sums, int rounds) {
    float sum = threadIdx.x;
    for (int round = 0; round < rounds; ++round) sum = sum * 0.999f + 0.5f;
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void neighbour(float* sums, int rounds) {
    float sum = threadIdx.x;
    for (int round = 0; round < rounds; ++round) sum = sum * 0.998f + 0.25f;
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void add_atomically(int* counters, int distinct, int rounds) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int round = 0; round < rounds; ++round) atomicAdd(&counters[(thread * 33 + round) % distinct], 1);
}

extern "C" __global__ void conflict(float* sums, int stride, int rounds) {
    __shared__ float shared[8192];
    for (int at = threadIdx.x; at < 8192; at += blockDim.x) shared[at] = at;
    __syncthreads();
    float sum = 0;
    int at = (threadIdx.x * stride) & 8191;
    for (int round = 0; round < rounds; ++round) {
        sum += shared[at];
        at = (at + 32 * stride) & 8191;
    }
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void look_up(const float* table, int mask, const int* indices, long long count, float* sums) {
    float sum = 0;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) {
        sum += table[indices[at] & mask];
    }
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void read_with_stride(const float* values, int stride, long long count, float* sums) {
    float sum = 0;
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x; at < count; at += step) sum += values[at * stride];
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void gather(const float* values, int mask, int stride, int reads, int rounds, float* sums) {
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int read = 0; read < reads; ++read) {
        unsigned int at = ((unsigned int)thread * stride + (unsigned int)read * 270336u * stride) & mask;
        float value = values[at];
        for (int round = 0; round < rounds; ++round) value = value * 0.999f + 0.5f;
        sum += value;
    }
    sums[thread] = sum;
}
"""


class Kernels:
    """The compiled kernels, launched on PyTorch's current stream."""

    def __init__(self) -> None:
        self.module = cupy.RawModule(code=SOURCE)
        self.sums = torch.zeros(BLOCKS * THREADS, device="cuda")

    def launch(self, name: str, *arguments: object, blocks: int = BLOCKS) -> None:
        """Launch a kernel; tensors are given as their addresses, Python's integers as 32 bits, NumPy's as they are."""
        given = tuple(
            np.uint64(value.data_ptr())
            if isinstance(value, torch.Tensor)
            else value
            if isinstance(value, np.generic)
            else np.int32(value)
            for value in arguments
        )
        with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            self.module.get_function(name)((blocks,), (THREADS,), given)

    def read(self, values: torch.Tensor, name: str = "read_values") -> None:
        """Read all values (float32, a multiple of four) once."""
        self.launch(name, values, np.int64(values.numel() // 4), self.sums)
