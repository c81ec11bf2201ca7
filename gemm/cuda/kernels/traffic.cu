// Kernels of traffic.go.

struct alignas(16) Vector { unsigned parts[4]; };

// load reads a vector past the L1 cache, and returns a word that depends on all of it.
__device__ static unsigned load(const Vector* at)
{
    unsigned a, b, c, d;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(at));
    return a ^ b ^ c ^ d;
}

// read_memory reads memory several times. It writes nothing but for one result of four billion.
extern "C" __global__ void __launch_bounds__(1024) read_memory(const Vector* from, unsigned* sink, int vectors, int rounds)
{
    int step = gridDim.x * blockDim.x;
    unsigned sum = 0;
    for (int round = 0; round < rounds; round++) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        for (; i + 3 * step < vectors; i += 4 * step) { // four reads at once
            unsigned a = load(from + i), b = load(from + i + step), c = load(from + i + 2 * step), d = load(from + i + 3 * step);
            sum ^= a ^ b ^ c ^ d;
        }
        for (; i < vectors; i += step)
            sum ^= load(from + i);
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
