// PTX instructions that kernels share: asynchronous copies to shared memory, loads of matrices, and on Hopper barriers and the
// order of warpgroup instructions.

namespace ptx {

__device__ __forceinline__ unsigned sharedAddress(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// copy16 starts a copy of 16 bytes to shared memory, or of zeros.
__device__ __forceinline__ void copy16(unsigned to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void load4(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ void barrierInit(unsigned barrier, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void barrierArrive(unsigned barrier) {
  asm volatile("{\n.reg .b64 t;\nmbarrier.arrive.shared::cta.b64 t, [%0];\n}" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrierWait(unsigned barrier, int parity) {
  int done;
  do
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.s32 %0, 1, 0, p;\n}"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
  while (!done);
}

// fence makes this thread's writes to shared memory visible to warpgroup instructions.
__device__ __forceinline__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// descriptor of a warpgroup operand in blocks of 64 columns, 128 bytes, with the 128-byte swizzle: chunk c of 16 bytes of row r lies
// at c xor (r modulo 8). The address is a multiple of 1024; block is the distance of the blocks in bytes, 16 if there is one.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned block) {
  return static_cast<unsigned long long>((address & 0x3ffff) >> 4) | static_cast<unsigned long long>(block >> 4) << 16 |
         64ull << 32 | 1ull << 62;
}

// settle stops the compiler from moving uses of the sums across this point.
template <int N>
__device__ __forceinline__ void settle(float (&d)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(d[i][c])::"memory");
}

// begin, issue and finish enclose warpgroup instructions. finish waits until at most N issued groups are unfinished.
__device__ __forceinline__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void issue() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int N>
__device__ __forceinline__ void finish() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

#endif

} // namespace ptx
