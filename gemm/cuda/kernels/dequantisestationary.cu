// Many tokens, stationary weights: two warpgroups each multiply 64 outputs by 256 tokens, with the weights as the A operand
// in registers. A third warpgroup copies the tokens, 64 inputs at a time.

namespace dequantise {

constexpr int manyTokens = 256, manyRows = 128, stages = 6, lag = 3;
constexpr int stageBytes = manyTokens * 128, manyBarriers = stages * stageBytes;

__device__ __forceinline__ void warpgroup(float (&d)[32][4], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WARPGROUP_REGISTERS
               "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 0;"
               : WARPGROUP_SUMS
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// multiply starts the multiplication of 64 inputs and does not wait for it.
__device__ __forceinline__ void multiply(float (&d)[32][4], const unsigned (&a)[4][4], unsigned tokens) {
  const unsigned long long b = descriptor(tokens, 16);
  begin();
#pragma unroll
  for (int step = 0; step < 4; step++) warpgroup(d, a[step], b + 2 * step);
  issue();
}

__device__ __forceinline__ void publish(unsigned full) {
  fence();
  barrierArrive(full);
}

// produce copies the tokens' inputs.
__device__ __forceinline__ void produce(const bf16* x, int m, int k, unsigned memory, unsigned full, unsigned empty) {
  const int thread = threadIdx.x & 127, row = thread >> 3, chunk = thread & 7, count = k / 64;
  const int token = blockIdx.x * manyTokens + row;
  const bf16* from = x + static_cast<long long>(token) * k + chunk * 8;
  const unsigned to = memory + row * 128 + ((chunk ^ (row & 7)) << 4);
  for (int i = 0; i < count; i++) {
    const int slot = i % stages;
    if (i >= stages) barrierWait(empty + 8 * slot, (i / stages & 1) ^ 1);
#pragma unroll
    for (int j = 0; j < manyTokens / 16; j++) {
      const bool valid = token + 16 * j < m;
      copy16(to + slot * stageBytes + j * 2048, valid ? from + static_cast<long long>(16 * j) * k : x, valid);
    }
    commit();
    from += 64;
    if (i >= lag) {
      wait<lag>();
      publish(full + 8 * ((i - lag) % stages));
    }
  }
  wait<0>();
  for (int i = count > lag ? count - lag : 0; i < count; i++) publish(full + 8 * (i % stages));
}

// store writes 64 outputs of the tokens through shared memory.
__device__ __forceinline__ void store(bf16* y, float (&d)[32][4], int m, int n, float scale, unsigned memory, int group) {
  const int thread = threadIdx.x & 127, lane = thread & 31, warp = thread >> 5;
  const unsigned tile = memory + group * (manyTokens * 128);
#pragma unroll
  for (int j = 0; j < 32; j += 2) {
    const int token = 8 * (j + (lane >> 4)) + (lane & 7), chunk = 2 * warp + (lane >> 3 & 1);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(tile + token * 128 + ((chunk ^ (token & 7)) << 4)),
                 "r"(pack2(d[j][0] * scale, d[j][1] * scale)), "r"(pack2(d[j][2] * scale, d[j][3] * scale)),
                 "r"(pack2(d[j + 1][0] * scale, d[j + 1][1] * scale)), "r"(pack2(d[j + 1][2] * scale, d[j + 1][3] * scale)) : "memory");
  }
  asm volatile("bar.sync %0, 128;" ::"r"(2 + group) : "memory");
  const int chunk = thread & 7, out = blockIdx.y * manyRows + group * 64 + chunk * 8;
  for (int row = thread >> 3; row < manyTokens; row += 16) {
    const int token = blockIdx.x * manyTokens + row;
    unsigned v[4];
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(tile + row * 128 + ((chunk ^ (row & 7)) << 4)) : "memory");
    if (token < m && out < n)
      asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(y + static_cast<long long>(token) * n + out), "r"(v[0]), "r"(v[1]),
                   "r"(v[2]), "r"(v[3]) : "memory");
  }
}

// consume multiplies. Weights are loaded two units ahead and dequantised one unit ahead, beside the matrix instructions.
__device__ __forceinline__ void consume(bf16* y, const weights& w, int m, int n, int count, float scale, unsigned memory, unsigned full,
                                        unsigned empty) {
  const int group = threadIdx.x >> 7;
  const bool leader = (threadIdx.x & 31) == 0;
  float d[32][4];
#pragma unroll
  for (int i = 0; i < 32; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) d[i][c] = 0;
  unit next[2];
  unsigned a[2][4][4];
  next[0].load(w, 0);
  next[1].load(w, count > 1 ? 1 : 0);
  next[0].dequantise(a[0]);
  next[0].load(w, count > 2 ? 2 : 0);
  settle(d);
  for (int i = 0; i < count; i += 2) {
#pragma unroll
    for (int odd = 0; odd < 2; odd++) {
      const int at = i + odd;
      if (at >= count) break;
      barrierWait(full + 8 * (at % stages), at / stages & 1);
      multiply(d, a[odd], memory + at % stages * stageBytes);
      finish<1>();
      if (at > 0 && leader) barrierArrive(empty + 8 * ((at - 1) % stages));
      next[odd ^ 1].dequantise(a[odd ^ 1]);
      next[odd ^ 1].load(w, at + 3 < count ? at + 3 : 0);
    }
  }
  finish<0>();
  settle(d);
  asm volatile("bar.sync 1, 256;" ::: "memory");
  store(y, d, m, n, scale, memory, group);
}

} // namespace dequantise

// dequantise_stationary multiplies any number of tokens. Blocks: ⌈M/256⌉ × ⌈N/128⌉.
extern "C" __global__ void __launch_bounds__(384, 1)
dequantise_stationary(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  const unsigned memory = ptx::sharedAddress(dequantise_shared), full = memory + dequantise::manyBarriers,
                 empty = full + 8 * dequantise::stages;
  if (threadIdx.x == 0)
    for (int i = 0; i < dequantise::stages; i++) {
      ptx::barrierInit(full + 8 * i, 128);
      ptx::barrierInit(empty + 8 * i, 8);
    }
  __syncthreads();
  if (threadIdx.x >= 256) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    dequantise::produce(x, m, k, memory, full, empty);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const dequantise::weights w(codes, scales, zeros, blockIdx.y * (dequantise::manyRows / 16) + (threadIdx.x >> 5), k, threadIdx.x & 31);
    dequantise::consume(y, w, m, n, k / 64, scale, memory, full, empty);
  }
}
