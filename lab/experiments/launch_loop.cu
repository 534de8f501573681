// A loop of launches without other code of the host, built by launch_programs.py.

__global__ void many_small(float* sums, int rounds) {
    float sum = threadIdx.x;
    for (int round = 0; round < rounds; ++round) sum = sum * 0.999f + 0.5f;
    sums[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" int launch_many(float* sums, int count, int rounds, cudaStream_t stream) {
    for (int launch = 0; launch < count; ++launch) many_small<<<132, 256, 0, stream>>>(sums, rounds);
    return cudaGetLastError();
}
