// Few tokens: the weights come from memory once, straight to registers. CLUSTER blocks share the inputs.

namespace dequantise {

constexpr int fewTokens = 16, ring = 4; // units of a strip in registers

__device__ __forceinline__ void load4(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void clusterSync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// remote reads a float of another block's shared memory.
__device__ __forceinline__ float remote(unsigned address, int rank) {
  float v;
  asm volatile("{\n.reg .u32 at;\nmapa.shared::cluster.u32 at, %1, %2;\nld.shared::cluster.f32 %0, [at];\n}"
               : "=f"(v) : "r"(address), "r"(rank) : "memory");
  return v;
}

// shared says that a ring's units share groups, which lie alike in every ring.
constexpr bool shared = GROUP == 128 || GROUP == 256;
constexpr int slots = shared ? ring * 64 / GROUP : ring; // of groups in registers

__device__ __forceinline__ constexpr int slot(int s) { return shared ? s * 64 / GROUP : s; }

// few is a warp's part of dequantise_few: two strips.
struct few {
  weights w[2];
  unsigned codes[ring][2][4];
  groups g[slots][2];
  float d[2][2][4];

  // fetch loads the strips' units, and their groups if asked.
  __device__ __forceinline__ void fetch(int s, int unit, bool groupsToo) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
      w[i].load(codes[s][i], unit);
      if (groupsToo) w[i].load(g[slot(s)][i], unit);
    }
  }

  // quad multiplies the units of a ring and loads those after it. FULL says that all of them exist.
  template <bool FULL>
  __device__ __forceinline__ void quad(int at, int last, unsigned tokens) {
#pragma unroll
    for (int s = 0; s < ring; s++) {
      if (!FULL && at + s >= last) break;
#pragma unroll
      for (int step = 0; step < 4; step++) {
        unsigned b[4];
        load4(b, tokens + s * 128 + step * 32);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          unsigned a[4];
          values(a, codes[s][i][step], g[slot(s)][i], step);
          mma(d[i][0], a, b[0], b[1]);
          mma(d[i][1], a, b[2], b[3]);
        }
      }
      if (FULL || at + s + ring < last) {
#pragma unroll
        for (int i = 0; i < 2; i++) w[i].load(codes[s][i], at + s + ring);
      }
      if (s == ring - 1 || slot(s + 1) != slot(s)) { // the groups of a ring begin at its first units
        const int begin = shared ? slot(s) * (GROUP / 64) : s;
        if (FULL || at + begin + ring < last) {
#pragma unroll
          for (int i = 0; i < 2; i++) w[i].load(g[slot(s)][i], at + begin + ring);
        }
      }
    }
  }
};

// multiplyFew multiplies 32 outputs a warp by a block's share of the inputs. The blocks of a cluster add up their sums,
// each for its share of the outputs.
__device__ __forceinline__ void multiplyFew(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros,
                                            int m, int n, int k, float scale, unsigned char* memory) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5, rank = blockIdx.x, rows = 32 * warps;
  const int units = k / 64, rings = (units + ring - 1) / ring;
  const int first = rings * rank / CLUSTER * ring, end = rings * (rank + 1) / CLUSTER * ring, last = end < units ? end : units;
  const int strips = (n + 127) / 128 * 8, strip = blockIdx.y * (2 * warps) + 2 * warp;
  const int s0 = strip < strips ? strip : 0, s1 = strip + 1 < strips ? strip + 1 : 0; // beyond, results are not stored
  few f = {{weights(codes, scales, zeros, s0, k, lane), weights(codes, scales, zeros, s1, k, lane)}};
#pragma unroll
  for (int s = 0; s < ring; s++)
    if (first + s < last) f.fetch(s, first + s, !shared || s * 64 % GROUP == 0);

  const unsigned tokens = sharedAddress(memory);
  const int chunks = (last - first) * 8, pitch = chunks * 16 + 16;
  for (int token = warp; token < fewTokens; token += warps) {
    const bool valid = token < m;
    const bf16* from = x + static_cast<long long>(valid ? token : 0) * k + first * 64;
    for (int chunk = lane; chunk < chunks; chunk += 32) copy16(tokens + token * pitch + chunk * 16, from + chunk * 8, valid);
  }
  commit();
  wait<0>();
  __syncthreads();

#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) f.d[i][j][c] = 0;
  unsigned mine = tokens + ((lane & 7) + (lane >> 4) * 8) * pitch + (lane >> 3 & 1) * 16;
  int at = first;
  for (; at + 2 * ring <= last; at += ring, mine += ring * 128) f.quad<true>(at, last, mine);
  for (; at < last; at += ring, mine += ring * 128) f.quad<false>(at, last, mine);

  __syncthreads();
  float* sums = reinterpret_cast<float*>(memory);
  const int pitchSums = rows + 4;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int c = 0; c < 4; c++)
        sums[(j * 8 + (lane & 3) * 2 + (c & 1)) * pitchSums + (2 * warp + i) * 16 + lane / 4 + (c >> 1) * 8] = f.d[i][j][c];
  clusterSync();
  const int share = rows / CLUSTER;
  for (int token = warp; token < m && token < fewTokens; token += warps)
    for (int r = lane; r < share; r += 32) {
      const int row = rank * share + r, out = blockIdx.y * rows + row;
      float sum = 0;
#pragma unroll
      for (int other = 0; other < CLUSTER; other++) sum += remote(sharedAddress(sums + token * pitchSums + row), other);
      if (out < n) y[static_cast<long long>(token) * n + out] = static_cast<bf16>(pack2(sum * scale, 0));
    }
  clusterSync();
}

} // namespace dequantise

// dequantise_few multiplies at most 16 tokens. Blocks: CLUSTER × outputs; each warp has 32 outputs.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(256, 2)
dequantise_few(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  dequantise::multiplyFew(y, x, codes, scales, zeros, m, n, k, scale, dequantise_shared);
}
