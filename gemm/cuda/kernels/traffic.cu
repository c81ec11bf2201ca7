// Kernels of traffic.go.

struct alignas(16) Vector { unsigned parts[4]; };

// read_memory reads memory several times, past the L1 cache. It writes nothing but for one result of four billion.
extern "C" __global__ void __launch_bounds__(1024) read_memory(const Vector* from, unsigned* sink, int vectors, int rounds)
{
    int step = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (int round = 0; round < rounds; round++) {
#pragma unroll 8
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
            unsigned a, b, c, d;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(from + i));
            sum ^= a ^ b ^ c ^ d;
        }
    }
    if (sum == 0x9e3779b9)
        *sink = sum;
}

// spin keeps a multiprocessor's four schedulers busy with dependent integer operations, a thousand in each round.
extern "C" __global__ void __launch_bounds__(128) spin(unsigned* sink, int rounds)
{
    unsigned v = threadIdx.x;
    for (int i = 0; i < 1000 * rounds; i++)
        asm volatile("mad.lo.u32 %0, %0, 1664525, 1013904223;" : "+r"(v));
    if (v == 0x9e3779b9)
        *sink = v;
}

// rest waits in one thread.
extern "C" __global__ void rest(int nanoseconds)
{
    long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("nanosleep.u32 500;");
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
