// Many tokens, streaming weights: two warpgroups each multiply 64 tokens by 256 outputs, with the weights as the B operand.
// While the matrix instructions of 64 inputs run, both warpgroups write the next operands to shared memory. They copy tokens
// two steps ahead and dequantise weights one step ahead.

namespace dequantise {

constexpr int tileTokens = 128, tileOutputs = 256, stages = 4, warps = 8;
constexpr int tokensBytes = tileTokens * 128, stageBytes = tokensBytes + tileOutputs * 128;
constexpr int warpUnits = tileOutputs / 16 / warps; // one below the other

// warpgroup adds 16 inputs of 64 tokens and 256 outputs.
__device__ __forceinline__ void warpgroup(float (&d)[32][4], unsigned long long tokens, unsigned long long outputs) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WARPGROUP_REGISTERS "}, %128, %129, 1, 1, 1, 0, 0;"
               : WARPGROUP_SUMS
               : "l"(tokens), "l"(outputs));
}

// multiply starts the multiplication of 64 inputs and does not wait for it.
__device__ __forceinline__ void multiply(float (&d)[32][4], unsigned tokens, unsigned outputs) {
  const unsigned long long a = descriptor(tokens, 16), b = descriptor(outputs, 16);
  begin();
#pragma unroll
  for (int step = 0; step < 4; step++) warpgroup(d, a + 2 * step, b + 2 * step);
  issue();
}

__device__ __forceinline__ void storeMatrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// tokens is a thread's part of the copies: every 32nd token.
struct tokens {
  const bf16* from; // the next inputs
  unsigned to;
  int first, m, k;

  __device__ __forceinline__ tokens(const bf16* x, int m, int k, unsigned memory) : m(m), k(k) {
    const int row = threadIdx.x >> 3, chunk = threadIdx.x & 7;
    first = blockIdx.x * tileTokens + row;
    from = x + static_cast<long long>(first) * k + chunk * 8;
    to = memory + row * 128 + ((chunk ^ (row & 7)) << 4);
  }

  __device__ __forceinline__ void copy(const bf16* x, int slot) {
#pragma unroll
    for (int j = 0; j < tileTokens; j += 4 * warps) {
      const bool valid = first + j < m;
      copy16(to + slot * stageBytes + j * 128, valid ? from + static_cast<long long>(j) * k : x, valid);
    }
    from += 64;
  }
};

// dequantise writes a warp's units as rows of the B operand, and loads the units of another step.
__device__ __forceinline__ void dequantise(unit (&u)[warpUnits], const weights& w, int k, int next, unsigned to) {
#pragma unroll
  for (int i = 0; i < warpUnits; i++) {
    unsigned a[4][4];
    u[i].dequantise(a);
    u[i].load(w.below(i, k), next);
#pragma unroll
    for (int step = 0; step < 4; step++) storeMatrices((to + i * 2048) ^ (step << 5), a[step][0], a[step][1], a[step][2], a[step][3]);
  }
}

// store writes a warp's 16 tokens through shared memory.
__device__ __forceinline__ void store(bf16* y, const float (&d)[32][4], int m, int n, float scale, unsigned memory) {
  constexpr int pitch = tileOutputs * 2 + 16;
  const int lane = threadIdx.x & 31, row = threadIdx.x >> 5 << 4;
  const unsigned tile = memory + row * pitch;
#pragma unroll
  for (int j = 0; j < 32; j += 2)
    storeMatrices(tile + (lane & 15) * pitch + (j + (lane >> 4)) * 16, pack2(d[j][0] * scale, d[j][1] * scale), pack2(d[j][2] * scale, d[j][3] * scale),
                  pack2(d[j + 1][0] * scale, d[j + 1][1] * scale), pack2(d[j + 1][2] * scale, d[j + 1][3] * scale));
  __syncwarp();
  const int out = blockIdx.y * tileOutputs + lane * 8;
  for (int r = 0; r < 16; r++) {
    const int token = blockIdx.x * tileTokens + row + r;
    unsigned v[4];
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(tile + r * pitch + lane * 16) : "memory");
    if (token < m && out < n)
      asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(y + static_cast<long long>(token) * n + out), "r"(v[0]), "r"(v[1]),
                   "r"(v[2]), "r"(v[3]) : "memory");
  }
}

__device__ __forceinline__ void multiplyStreaming(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros,
                                                  int m, int n, int k, float scale, unsigned memory) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, count = k / 64;
  const int strips = (n + 127) / 128 * 8, strip = blockIdx.y * (tileOutputs / 16) + warp * warpUnits;
  const weights w(codes, scales, zeros, strip < strips ? strip : 0, k, lane); // beyond, results are not stored
  const unsigned outputs = memory + tokensBytes, mine = memory + (threadIdx.x >> 7) * 64 * 128;
  const unsigned to = outputs + (warp * warpUnits * 16 + (lane & 15)) * 128 + (((lane >> 4) ^ (lane & 7)) << 4);
  tokens t(x, m, k, memory);

  float d[32][4];
#pragma unroll
  for (int i = 0; i < 32; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) d[i][c] = 0;
  unit u[warpUnits];
#pragma unroll
  for (int i = 0; i < warpUnits; i++) u[i].load(w.below(i, k), 0);
  t.copy(x, 0);
  commit();
  if (count > 1) t.copy(x, 1);
  commit();
  dequantise(u, w, k, count > 1 ? 1 : 0, to);
  wait<1>();
  fence();
  settle(d);
  for (int i = 0; i < count; i++) {
    const int slot = i % stages * stageBytes;
    __syncthreads(); // the operands of step i are complete, and step i-2 has ended
    multiply(d, mine + slot, outputs + slot);
    if (i + 2 < count) t.copy(x, (i + 2) % stages);
    commit();
    if (i + 1 < count) dequantise(u, w, k, i + 2 < count ? i + 2 : 0, to + (i + 1) % stages * stageBytes);
    wait<1>();
    fence();
    finish<1>();
  }
  finish<0>();
  settle(d);
  __syncthreads(); // the results lie where operands lay
  store(y, d, m, n, scale, memory);
}

} // namespace dequantise

// dequantise_streaming multiplies any number of tokens. Blocks: ⌈M/128⌉ × ⌈N/256⌉.
extern "C" __global__ void __launch_bounds__(256, 1)
dequantise_streaming(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  dequantise::multiplyStreaming(y, x, codes, scales, zeros, m, n, k, scale, ptx::sharedAddress(dequantise_shared));
}
