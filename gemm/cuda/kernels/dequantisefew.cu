// Few tokens: each weight is read from memory once, through a ring in shared memory. A block multiplies STRIPS strips of UNITS units
// each. The units are divided among the WARPS warps and the CLUSTER blocks of a cluster. BLOCKS blocks share a multiprocessor.

namespace dequantise {

constexpr int fewTokens = 16, ring = 2;
constexpr int scaleBytes = unitGroups * scaleSize, sideBytes = scaleBytes + ZEROS * unitGroups; // of a unit
constexpr int blocks = GROUP < 64 ? UNITS : (GROUP < UNITS * 64 ? UNITS * 64 / GROUP : 1); // of groups, in a strip

// Scales and zero points of groups of 64 or more inputs are copied once for a block. Those of smaller groups are copied with the codes.
constexpr bool large = GROUP >= 64;
constexpr int mostGroups = CLUSTER == 1 || blocks == 1 ? blocks : (blocks + CLUSTER - 1) / CLUSTER + 1; // of a block's share of a strip
constexpr int groupsBytes = large ? (STRIPS * mostGroups * sideBytes + 127) / 128 * 128 : 0;
constexpr int inputBytes = fewTokens * 128;
constexpr int stageBytes = inputBytes + (STRIPS * (large ? 512 : 512 + sideBytes) + 127) / 128 * 128; // a unit of all strips, and the tokens' inputs

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
  // Bits 0 to 7 of a bfloat16 hold an integer times 2^-133: the exponent 1 has the unit of subnormal numbers. Four bits of it
  // are a code without a shift. Scales are larger by that, and smaller by factor.
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

  // get reads codes, scales and zero points at the lane's addresses.
  __device__ __forceinline__ void get(unsigned codesAt, unsigned scalesAt, unsigned zerosAt) {
    read4(codes, codesAt);
    read(g.scales, scalesAt);
#if ZEROS
    read(g.zeros, zerosAt);
#endif
  }
};

// few is a warp's part of dequantise_few.
struct few {
  const unsigned char* codes; // the lane's bytes of the block's first strip
  const unsigned char *scales, *zeros; // of the block's first strip
  const bf16* x; // the lane's inputs of every fourth token
  int last, m, lane;
  unsigned memory, sides; // shared: the warp's ring, the block's groups

  // fetch copies a unit of all strips and the tokens' inputs.
  __device__ __forceinline__ void fetch(int unit, unsigned stage) const {
    const int row = lane >> 3;
    const unsigned to = stage + row * 128 + (((lane & 7) ^ row) << 4);
    const bool more = unit < last;
#pragma unroll
    for (int q = 0; q < 4; q++)
      copy16((q & 1 ? to ^ 64 : to) + q * 512, x + q * (4 * UNITS * 64) + unit * 64, more && row + 4 * q < m);
    if constexpr (!large) {
      constexpr int each = sideBytes / 16, scaleParts = scaleBytes / 16;
#pragma unroll
      for (int i = 0; i < STRIPS * each; i += 32) {
        const int at = i + lane, strip = at / each, part = at % each;
        const bool zero = part >= scaleParts;
        copyIf(more && at < STRIPS * each, stage + inputBytes + STRIPS * 512 + at * 16,
               zero ? zeros + (strip * UNITS + unit) * (sideBytes - scaleBytes) + (part - scaleParts) * 16 : scales + (strip * UNITS + unit) * scaleBytes + part * 16);
      }
    }
#pragma unroll
    for (int s = 0; s < STRIPS; s++) {
      copyIf(more, stage + inputBytes + s * 512 + lane * 16, codes + s * (UNITS * 512) + unit * 512);
      commit();
    }
  }

  // fetchGroups copies the block's groups.
  __device__ __forceinline__ void fetchGroups(int block, int count) const {
    if constexpr (large) {
      for (int i = threadIdx.x; i < STRIPS * count * (scaleBytes / 16); i += 32 * WARPS) {
        const int strip = i / (count * (scaleBytes / 16)), at = i % (count * (scaleBytes / 16)) * 16;
        copyIf(true, sides + strip * (mostGroups * scaleBytes) + at, scales + (strip * blocks + block) * scaleBytes + at);
      }
#if ZEROS
      for (int i = threadIdx.x; i < STRIPS * count; i += 32 * WARPS)
        copyIf(true, sides + (STRIPS * mostGroups) * scaleBytes + (i / count * mostGroups + i % count) * 16, zeros + (i / count * blocks + block + i % count) * 16);
#endif
      commit();
    }
  }

  // run adds the warp's units, from unit on. The block's groups begin at block.
  __device__ __forceinline__ void run(float (&d)[STRIPS][2][4], int unit, int block) const {
    unsigned stage = memory;
#pragma unroll
    for (int i = 0; i < ring; i++) fetch(unit + i * WARPS, memory + i * stageBytes);
    if (large) {
      wait<ring * STRIPS>();
      __syncthreads();
    }
    const int row = (lane & 7) + (lane >> 4) * 8;
    const unsigned mine = row * 128 + (((lane >> 3 & 1) ^ (row & 7)) << 4);
    for (; unit < last; unit += WARPS) {
      const unsigned codesAt = stage + inputBytes + lane * 16;
      const unsigned side = large ? sides + (unit * 64 / GROUP - block) * scaleBytes : stage + inputBytes + STRIPS * 512;
      const unsigned scalesAt = side + lane / 4 * (laneGroups * scaleSize);
      const unsigned zerosAt = (large ? sides + STRIPS * mostGroups * scaleBytes + (unit * 64 / GROUP - block) * 16 : side + scaleBytes) + lane / 4 * laneGroups;
      constexpr int scaleStep = large ? mostGroups * scaleBytes : sideBytes, zeroStep = large ? mostGroups * 16 : sideBytes;
      piece p[2];
      unsigned b[4][4];
#pragma unroll
      for (int next = 0; next <= STRIPS; next++) { // read a strip, multiply the one before
        if (next < STRIPS) {
          waitFor(next);
          if (next == 0) {
            __syncwarp();
#pragma unroll
            for (int step = 0; step < 4; step++) load4(b[step], stage + (mine ^ (step << 5)));
          }
          p[next & 1].get(codesAt + next * 512, scalesAt + next * scaleStep, zerosAt + next * zeroStep);
        }
        if (next == 0) continue;
        const int s = next - 1;
#pragma unroll
        for (int step = 0; step < 4; step++) {
          unsigned a[4];
          p[s & 1].dequantise(a, step);
          mma(d[s][0], a, b[step][0], b[step][1]);
          mma(d[s][1], a, b[step][2], b[step][3]);
        }
      }
      // All lanes have read the stage: the matrix instructions are the warp's.
      fetch(unit + ring * WARPS, stage);
      stage = stage == memory + (ring - 1) * stageBytes ? memory : stage + stageBytes;
    }
    wait<0>();
  }

  // waitFor waits for a strip's codes. Every strip of a stage is a group of copies.
  __device__ __forceinline__ static void waitFor(int strip) {
    switch (strip) {
#define WAIT(S) case S: wait<(ring * STRIPS > S ? ring * STRIPS - 1 - S : 0)>(); break;
    WAIT(0) WAIT(1) WAIT(2) WAIT(3) WAIT(4) WAIT(5) WAIT(6) WAIT(7)
    }
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
  few f;
  f.codes = reinterpret_cast<const unsigned char*>(codes) + static_cast<long long>(strip) * (UNITS * 512) + lane * 16;
  f.scales = scales + static_cast<long long>(strip) * (blocks * scaleBytes);
  f.zeros = zeros + static_cast<long long>(strip) * (blocks * (sideBytes - scaleBytes));
  f.x = x + (lane >> 3) * (UNITS * 64) + (lane & 7) * 8;
  const int first = UNITS * rank / CLUSTER;
  f.last = UNITS * (rank + 1) / CLUSTER;
  f.m = m;
  f.lane = lane;
  f.sides = memory;
  f.memory = memory + groupsBytes + warp * (ring * stageBytes);
  const int block = first * 64 / GROUP;
  f.fetchGroups(block, (f.last * 64 - 1) / GROUP - block + 1);
  float d[STRIPS][2][4];
#pragma unroll
  for (int s = 0; s < STRIPS; s++)
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int c = 0; c < 4; c++) d[s][j][c] = 0;
  f.run(d, first + warp, block);

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
extern "C" __global__ void
#if CLUSTER > 1
__cluster_dims__(CLUSTER, 1, 1)
#endif
__launch_bounds__(32 * WARPS, BLOCKS)
dequantise_few(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  dequantise::multiplyFew(y, x, codes, scales, zeros, m, n, scale, ptx::sharedAddress(dequantise_shared));
}
