// Many tokens, the weights streaming: two warpgroups multiply 64 tokens by 256 outputs each, with the weights as the B
// operand. Two other warpgroups copy the tokens and dequantise the weights, 64 inputs at a time, into shared memory.

namespace dequantise {

constexpr int multipliers = 2, workers = 2, stages = 4; // warpgroups of each kind
constexpr int tileTokens = 64 * multipliers, tileOutputs = 256;
constexpr int tokensBytes = tileTokens * 128, stageBytes = tokensBytes + tileOutputs * 128, barriersAt = stages * stageBytes;
constexpr int units = tileOutputs / 16 / (4 * workers); // of a worker's warp, one below the other

// warpgroup adds 16 inputs of 64 tokens and 256 outputs.
__device__ __forceinline__ void warpgroup(float (&d)[32][4], unsigned long long tokens, unsigned long long outputs) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WARPGROUP_REGISTERS "}, %128, %129, 1, 1, 1, 0, 0;"
               : WARPGROUP_SUMS
               : "l"(tokens), "l"(outputs));
}

// multiply begins to add 64 inputs.
__device__ __forceinline__ void multiply(float (&d)[32][4], unsigned tokens, unsigned outputs) {
  const unsigned long long a = swizzled(tokens), b = swizzled(outputs);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int step = 0; step < 4; step++) warpgroup(d, a + 2 * step, b + 2 * step);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void storeMatrices(unsigned to, unsigned a, unsigned b, unsigned c, unsigned d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// publish is a warp's part of a stage.
__device__ __forceinline__ void publish(unsigned full, int lane) {
  published();
  __syncwarp();
  if (lane == 0) barrierArrive(full);
}

// work copies tokens and dequantises weights.
__device__ __forceinline__ void work(const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n,
                                     int k, unsigned memory, unsigned full, unsigned empty) {
  const int thread = threadIdx.x - 128 * multipliers, lane = thread & 31, warp = thread >> 5, count = k / 64;
  const int row = thread >> 3, chunk = thread & 7, token = blockIdx.x * tileTokens + row;
  const bf16* from = x + static_cast<long long>(token) * k + chunk * 8;
  const unsigned to = memory + row * 128 + ((chunk ^ (row & 7)) << 4);

  const int strips = (n + 127) / 128 * 8, first = blockIdx.y * (tileOutputs / 16) + warp * units;
  const unsigned place = memory + tokensBytes + (warp * units * 16 + (lane & 15)) * 128 + (((lane >> 4) ^ (lane & 7)) << 4);
  const weights w(codes, scales, zeros, first < strips ? first : 0, k, lane); // beyond, results are not stored
  unit next[units];
#pragma unroll
  for (int u = 0; u < units; u++) next[u].load(w.below(u, k), 0);

  for (int i = 0; i < count; i++) {
    const int slot = i % stages;
    if (i >= stages) barrierWait(empty + 8 * slot, (i / stages & 1) ^ 1);
#pragma unroll
    for (int j = 0; j < tileTokens; j += 16 * workers) {
      const bool valid = token + j < m;
      copy16(to + slot * stageBytes + j * 128, valid ? from + static_cast<long long>(j) * k : x, valid);
    }
    commit();
    from += 64;
#pragma unroll
    for (int u = 0; u < units; u++) {
      unsigned a[4][4];
      next[u].dequantise(a);
      next[u].load(w.below(u, k), i + 1 < count ? i + 1 : 0);
#pragma unroll
      for (int step = 0; step < 4; step++) // the right operand's rows are outputs
        storeMatrices((place + slot * stageBytes + u * 2048) ^ (step << 5), a[step][0], a[step][1], a[step][2], a[step][3]);
    }
    if (i > 0) {
      wait<1>();
      publish(full + 8 * ((i - 1) % stages), lane);
    }
  }
  wait<0>();
  publish(full + 8 * ((count - 1) % stages), lane);
}

// store writes a warp's 16 tokens, by way of shared memory.
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

// consume multiplies.
__device__ __forceinline__ void consume(bf16* y, int m, int n, int count, float scale, unsigned memory, unsigned full, unsigned empty) {
  const bool leader = (threadIdx.x & 31) == 0;
  const unsigned tokens = memory + (threadIdx.x >> 7) * 64 * 128, outputs = memory + tokensBytes;
  float d[32][4];
#pragma unroll
  for (int i = 0; i < 32; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) d[i][c] = 0;
  settle(d);
  for (int i = 0; i < count; i++) {
    const int slot = i % stages;
    barrierWait(full + 8 * slot, i / stages & 1);
    multiply(d, tokens + slot * stageBytes, outputs + slot * stageBytes);
    finish<1>();
    if (i > 0 && leader) barrierArrive(empty + 8 * ((i - 1) % stages));
  }
  finish<0>();
  settle(d);
  asm volatile("bar.sync 1, %0;" ::"n"(128 * multipliers) : "memory"); // the results lie where operands lay
  store(y, d, m, n, scale, memory);
}

} // namespace dequantise

// dequantise_streaming multiplies any number of tokens. Blocks: ⌈M/128⌉ × ⌈N/256⌉.
extern "C" __global__ void __launch_bounds__(512, 1)
dequantise_streaming(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  const unsigned memory = dequantise::sharedAddress(dequantise_shared), full = memory + dequantise::barriersAt,
                 empty = full + 8 * dequantise::stages;
  if (threadIdx.x == 0)
    for (int i = 0; i < dequantise::stages; i++) {
      dequantise::barrierInit(full + 8 * i, 4 * dequantise::workers);
      dequantise::barrierInit(empty + 8 * i, 4 * dequantise::multipliers);
    }
  __syncthreads();
  if (threadIdx.x >= 128 * dequantise::multipliers) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 88;");
    dequantise::work(x, codes, scales, zeros, m, n, k, memory, full, empty);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
    dequantise::consume(y, m, n, k / 64, scale, memory, full, empty);
  }
}
