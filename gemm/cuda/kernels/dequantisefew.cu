// Few tokens: each weight is read from memory once, through a ring in shared memory. A block multiplies STRIPS strips of UNITS units
// each. The units are divided among the WARPS warps and the CLUSTER blocks of a cluster. BLOCKS blocks share a multiprocessor.

namespace dequantise {

constexpr int fewTokens = 16, ring = 2;
constexpr int scaleBytes = unitGroups * scaleSize, sideBytes = scaleBytes + ZEROS * unitGroups; // of a unit
constexpr int unitBytes = 512 + sideBytes, inputBytes = fewTokens * 128;
constexpr int stageBytes = inputBytes + STRIPS * unitBytes; // a unit of all strips, and the tokens' inputs
constexpr int blocks = GROUP < 64 ? UNITS : (GROUP < UNITS * 64 ? UNITS * 64 / GROUP : 1); // of groups, in a strip

__device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// copyIf copies 16 bytes without a branch.
__device__ __forceinline__ void copyIf(bool yes, unsigned to, const unsigned char* from) {
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p cp.async.cg.shared.global [%0], [%1], 16;\n}" ::"r"(to), "l"(from), "r"(static_cast<int>(yes)) : "memory");
}

__device__ __forceinline__ void read4(unsigned (&r)[4], unsigned address) {
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void read2(unsigned (&r)[2], unsigned address) {
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(address) : "memory");
}

__device__ __forceinline__ unsigned read1(unsigned address) {
  unsigned r;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(address) : "memory");
  return r;
}

__device__ __forceinline__ unsigned readHalf(unsigned address) {
  unsigned short r;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(r) : "r"(address) : "memory");
  return r;
}

template <int PAIRS, bool WIDE>
__device__ __forceinline__ void read(words<PAIRS, WIDE>& w, unsigned address) {
  constexpr int count = words<PAIRS, WIDE>::count;
  if constexpr (count == 4)
    read4(w.v, address);
  else if constexpr (count == 2)
    read2(w.v, address);
  else
    w.v[0] = WIDE || PAIRS == 2 ? read1(address) : readHalf(address);
}

__device__ __forceinline__ void write4(unsigned address, const float (&v)[4]) {
  asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(address), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}

// add4 adds four floats of the shared memory of a block of the cluster.
__device__ __forceinline__ void add4(float (&sum)[4], unsigned address, int rank) {
  float v[4];
  asm volatile("{\n.reg .u32 at;\nmapa.shared::cluster.u32 at, %4, %5;\nld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [at];\n}"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address), "r"(rank) : "memory");
#pragma unroll
  for (int c = 0; c < 4; c++) sum[c] += v[c];
}

__device__ __forceinline__ void add4(float (&sum)[4], unsigned address) {
  float v[4];
  asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(address) : "memory");
#pragma unroll
  for (int c = 0; c < 4; c++) sum[c] += v[c];
}

__device__ __forceinline__ void clusterSync() {
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// piece is a lane's part of a unit of a strip.
struct piece {
  unsigned codes[4];
  groups g;

#if FP4
  static constexpr float factor = 1; // of the results

  __device__ __forceinline__ void dequantise(unsigned (&a)[4], int step) const { values(a, codes[step], g, step); }
#else
  // The eight lowest bits of a bfloat16 are an integer times 2^-133, since the least exponent has the unit of subnormal numbers.
  // So bits 0 to 3 and bits 4 to 7 are codes. Scales are larger by 2^133 / factor, or 2^129 / factor.
  static constexpr float factor = 65536;

  __device__ __forceinline__ void dequantise(unsigned (&a)[4], int step) const {
    const int pair = step * perUnit / 4;
    unsigned s[2], zero[2];
    g.scales.each(s, pair);
#if ZEROS
    g.zeros.each(zero, pair);
#endif
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const unsigned code = (i < 2 ? codes[step] : codes[step] >> 8) & (i & 1 ? 0x00f000f0 : 0x000f000f);
      const unsigned by = product2(s[i & 1], i & 1 ? 0x78007800 : 0x7a007a00); // 2^113, 2^117
#if ZEROS
      a[i] = product2(fma2(code, 0x3f803f80, (i & 1 ? zero[1] << 4 : zero[0]) | 0x80008000), by);
#else
      a[i] = fma2(code, by, product2(s[i & 1], 0xb900b900)); // −2^-13: 8 times the scale
#endif
    }
  }
#endif

  // get reads the unit from shared memory.
  __device__ __forceinline__ void get(unsigned unit, int lane) {
    read4(codes, unit + lane * 16);
    read(g.scales, unit + 512 + lane / 4 * (laneGroups * scaleSize));
#if ZEROS
    read(g.zeros, unit + 512 + scaleBytes + lane / 4 * laneGroups);
#endif
  }
};

// few is a warp's part of dequantise_few.
struct few {
  const unsigned char *codes, *side; // the lane's bytes of the block's first strip
  const bf16* x;                     // the lane's inputs of every fourth token
  int last, m, lane;
  unsigned memory, mine; // shared memory: the warp's ring, and the lane's row of the tokens' inputs in a stage

  // inputs copies the tokens' inputs of a unit.
  __device__ __forceinline__ void inputs(int unit, unsigned stage) const {
    const int row = lane >> 3;
#pragma unroll
    for (int q = 0; q < 4; q++) {
      const bool valid = unit < last && row + 4 * q < m;
      copy16(stage + (row + 4 * q) * 128 + (((lane & 7) ^ ((row + 4 * q) & 7)) << 4), valid ? x + 4 * q * (UNITS * 64) + unit * 64 : x, valid);
    }
  }

  // fetch copies a unit of a strip.
  __device__ __forceinline__ void fetch(int unit, int strip, unsigned stage) const {
    const unsigned to = stage + inputBytes + strip * unitBytes + lane * 16;
    copyIf(unit < last, to, codes + strip * (UNITS * 512) + unit * 512);
    // The lanes behind those of the scales have those of the zero points.
    const int block = GROUP < 64 ? unit : unit * 64 / GROUP, zero = lane * 16 >= scaleBytes, size = zero ? sideBytes - scaleBytes : scaleBytes;
    copyIf(unit < last && lane * 16 < sideBytes, to + 512, side + (strip * blocks + block) * size);
  }

  // run adds the warp's units, from unit on.
  __device__ __forceinline__ void run(float (&d)[STRIPS][2][4], int unit) const {
    unsigned stage = memory, other = memory + stageBytes;
#pragma unroll
    for (int i = 0; i < ring; i++) {
      inputs(unit + i * WARPS, memory + i * stageBytes);
#pragma unroll
      for (int s = 0; s < STRIPS; s++) fetch(unit + i * WARPS, s, memory + i * stageBytes);
      commit();
    }
    for (; unit < last; unit += WARPS) {
      wait<ring - 1>();
      __syncwarp();
      unsigned b[4][4];
#pragma unroll
      for (int step = 0; step < 4; step++) load4(b[step], stage + (mine ^ (step << 5)));
      piece p[2];
      p[0].get(stage + inputBytes, lane);
#pragma unroll
      for (int s = 0; s < STRIPS; s++) {
        if (s + 1 < STRIPS) p[(s + 1) & 1].get(stage + inputBytes + (s + 1) * unitBytes, lane);
#pragma unroll
        for (int step = 0; step < 4; step++) {
          unsigned a[4];
          p[s & 1].dequantise(a, step);
          mma(d[s][0], a, b[step][0], b[step][1]);
          mma(d[s][1], a, b[step][2], b[step][3]);
        }
        // All lanes have read the unit: the matrix instructions are the warp's.
        if (s == 0) inputs(unit + ring * WARPS, stage);
        fetch(unit + ring * WARPS, s, stage);
      }
      commit();
      const unsigned next = other;
      other = stage;
      stage = next;
    }
    wait<0>();
  }
};

// storeFew stores the results of four sums. at is the index of this group of four among the block's sums.
__device__ __forceinline__ void storeFew(bf16* y, const float (&sum)[4], int strip, int at, int m, int n, float scale) {
  const int lane = at & 31, token = (at >> 5 & 1) * 8 + (lane & 3) * 2, out = (strip + (at >> 6)) * 16 + lane / 4;
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const int t = token + (c & 1), o = out + (c >> 1) * 8;
    if (t < m && o < n) y[static_cast<long long>(t) * n + o] = static_cast<bf16>(pack2(sum[c] * (scale * piece::factor), 0));
  }
}

// multiplyFew multiplies a block's strips. Its warps, and then the blocks of a cluster, add their sums in a fixed order.
__device__ __forceinline__ void multiplyFew(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros,
                                            int m, int n, float scale, unsigned memory) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, rank = blockIdx.x;
  const int most = (n + 127) / 128 * 8 - STRIPS, strip = blockIdx.y * STRIPS < most ? blockIdx.y * STRIPS : most; // the last blocks may overlap
  const bool zero = lane * 16 >= scaleBytes;
  const int row = (lane & 7) + (lane >> 4) * 8;
  few f;
  f.codes = reinterpret_cast<const unsigned char*>(codes) + static_cast<long long>(strip) * (UNITS * 512) + lane * 16;
  f.side = (zero ? zeros - scaleBytes : scales) + static_cast<long long>(strip) * (blocks * (zero ? sideBytes - scaleBytes : scaleBytes)) + lane * 16;
  f.x = x + (lane >> 3) * (UNITS * 64) + (lane & 7) * 8;
  f.last = UNITS * (rank + 1) / CLUSTER;
  f.m = m;
  f.lane = lane;
  f.memory = memory + warp * (ring * stageBytes);
  f.mine = row * 128 + (((lane >> 3 & 1) ^ (row & 7)) << 4);
  float d[STRIPS][2][4];
#pragma unroll
  for (int s = 0; s < STRIPS; s++)
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) d[s][j][c] = 0;
  f.run(d, UNITS * rank / CLUSTER + warp);

  __syncthreads();
  constexpr int sums = STRIPS * 64; // of a warp, in groups of four
#pragma unroll
  for (int s = 0; s < STRIPS; s++)
#pragma unroll
    for (int j = 0; j < 2; j++) write4(memory + 16 * (warp * sums + (s * 2 + j) * 32 + lane), d[s][j]);
  __syncthreads();
  for (int at = threadIdx.x; at < sums; at += 32 * WARPS) {
    float sum[4] = {0, 0, 0, 0};
#pragma unroll
    for (int w = 0; w < WARPS; w++) add4(sum, memory + 16 * (w * sums + at));
    if (CLUSTER == 1)
      storeFew(y, sum, strip, at, m, n, scale);
    else
      write4(memory + 16 * at, sum);
  }
#if CLUSTER > 1
  clusterSync();
  constexpr int share = sums / CLUSTER;
  for (int at = rank * share + threadIdx.x; at < (rank + 1) * share; at += 32 * WARPS) {
    float sum[4] = {0, 0, 0, 0};
#pragma unroll
    for (int other = 0; other < CLUSTER; other++) add4(sum, memory + 16 * at, other);
    storeFew(y, sum, strip, at, m, n, scale);
  }
  clusterSync();
#endif
}

} // namespace dequantise

// dequantise_few multiplies at most 16 tokens. Blocks: CLUSTER × outputs.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(32 * WARPS, BLOCKS)
dequantise_few(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  dequantise::multiplyFew(y, x, codes, scales, zeros, m, n, scale, ptx::sharedAddress(dequantise_shared));
}
