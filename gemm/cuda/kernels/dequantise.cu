// Products of activations with weights of four-bit codes: y[M,N] = x[M,K]·w[N,K]ᵀ, with w = scale·(code − zero) rounded to
// bfloat16 in registers, before the matrix instructions. Sums are float32. The kernels need compute capability 9.0.
//
// Macros choose the format: FP4 (codes are E2M1, otherwise unsigned integers), ZEROS (a zero point for every group,
// otherwise 8), GROUP (inputs of a group: 16, 32 or a multiple of 64), SCALE (0: bfloat16, 1: E4M3, 2: E8M0, 3: E4M3
// without subnormal numbers), CLUSTER (blocks that share the inputs of dequantise_few; 0: dequantise_many is compiled instead).
//
// Codes lie in units of 16 outputs × 64 inputs, 16 bytes for each lane of a warp: a word for every 16 inputs, with
// the lane's elements of the left operand of m16n8k16 (see pack.go). A strip of 16 outputs has K/64 units in a row. Its scales
// and zero points lie in the same order. Those of outputs i and i+8 lie side by side, and those of a unit's groups.
//
// In the matrix instructions FP4 values are smaller by a factor of 2^8. The factor of the results compensates for it.

typedef unsigned short bf16;

namespace dequantise {

constexpr int perUnit = GROUP < 64 ? 64 / GROUP : 1; // groups in a unit

__device__ __forceinline__ unsigned sharedAddress(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void copy16(unsigned to, const bf16* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ unsigned fma2(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// product2 multiplies two pairs. Adding −0 keeps the sign of a zero product.
__device__ __forceinline__ unsigned product2(unsigned a, unsigned b) { return fma2(a, b, 0x80008000u); }

__device__ __forceinline__ unsigned select(unsigned a, unsigned order) {
  unsigned d;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(d) : "r"(a), "r"(order));
  return d;
}

// merge is (a & mask) | other in one instruction, which two constants otherwise are not.
__device__ __forceinline__ unsigned merge(unsigned a, unsigned mask, unsigned other) {
  unsigned d;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(d) : "r"(a), "r"(mask), "r"(other));
  return d;
}

// words holds one or more 16-bit pairs, as many as a unit has groups.
template <int PAIRS, bool WIDE>
struct words {
  static constexpr int count = WIDE ? PAIRS : (PAIRS + 1) / 2;
  unsigned v[count];

  __device__ __forceinline__ void load(const void* from) {
    if constexpr (WIDE ? PAIRS == 4 : false)
      asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "l"(from));
    else if constexpr (count == 2)
      asm volatile("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(v[0]), "=r"(v[1]) : "l"(from));
    else if constexpr (WIDE || PAIRS == 2)
      asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v[0]) : "l"(from));
    else {
      unsigned short half;
      asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(half) : "l"(from));
      v[0] = half;
    }
  }

  // each has a pair's numbers in both halves of a word.
  __device__ __forceinline__ void each(unsigned (&to)[2], int pair) const {
    if constexpr (WIDE) {
      to[0] = select(v[pair], 0x1010);
      to[1] = select(v[pair], 0x3232);
    } else {
      const unsigned at = pair % 2 * 0x0202;
      to[0] = select(v[pair / 2], 0x4040 + at);
      to[1] = select(v[pair / 2], 0x4141 + at);
    }
  }
};

typedef words<perUnit, SCALE == 0> scaleWords;
typedef words<perUnit, false> zeroWords;

constexpr int scaleSize = SCALE == 0 ? 2 : 1, laneGroups = 2 * perUnit; // scales of a lane
constexpr int unitGroups = 8 * laneGroups;                              // scales of a unit's groups

// groups are a lane's scales and zero points in a unit.
struct groups {
  scaleWords scales;
  zeroWords zeros;
};

// weights are a lane's pointers into the packed weights of a strip.
struct weights {
  const unsigned* codes;
  const unsigned char *scales, *zeros;

  __device__ __forceinline__ weights(const unsigned* c, const unsigned char* s, const unsigned char* z, int strip, int k, int lane) {
    const int units = k / 64, blocks = GROUP < 64 ? units : (GROUP < k ? k / GROUP : 1);
    codes = c + static_cast<long long>(strip) * units * 128 + lane * 4;
    const long long at = static_cast<long long>(strip) * blocks * unitGroups + lane / 4 * laneGroups;
    scales = s + at * scaleSize;
    zeros = z + at;
  }

  __device__ __forceinline__ void load(unsigned (&to)[4], int unit) const {
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(codes + unit * 128));
  }

  __device__ __forceinline__ void load(groups& g, int unit) const {
    const int block = GROUP < 64 ? unit : unit * 64 / GROUP;
    g.scales.load(scales + block * (unitGroups * scaleSize));
#if ZEROS
    g.zeros.load(zeros + block * unitGroups);
#endif
  }
};

// values are a lane's elements of the left operand for 16 inputs.
__device__ __forceinline__ void values(unsigned (&a)[4], unsigned codes, const groups& g, int step) {
  const int pair = step * perUnit / 4;
  unsigned s[2];
  g.scales.each(s, pair);
#if FP4
  // Codes read as bfloat16 are smaller by a factor of 2^126, so scales are larger by 2^118.
#if SCALE == 1
#pragma unroll
  for (int i = 0; i < 2; i++) s[i] = product2(product2((s[i] & 0x007f007f) << 4, 0x7b807b80), 0x7a807a80); // 2^120: the exponents' biases
#elif SCALE == 2
#pragma unroll
  for (int i = 0; i < 2; i++) s[i] = (s[i] << 7) + 0x3b003b00;
#elif SCALE == 3
#pragma unroll
  for (int i = 0; i < 2; i++) s[i] = (s[i] << 4) + 0x77007700;
#endif
  const unsigned all = 0x81c081c0;
  a[0] = codes & all;
  a[1] = (codes << 3) & all;
  a[2] = (codes << 6) & all;
  a[3] = merge(codes << 1, 0x80008000, merge(codes >> 3, 0x01800180, (codes >> 7) & 0x00400040));
#pragma unroll
  for (int i = 0; i < 4; i++) a[i] = product2(a[i], s[i & 1]);
#else
  const unsigned one = 0x3f803f80;
  unsigned zero[2] = {0xc308c308, 0xc308c308}; // −(128 + 8)
#if ZEROS
  g.zeros.each(zero, pair);
  zero[0] |= 0xc300c300;
  zero[1] |= 0xc300c300;
#endif
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned biased = merge(codes >> (4 * i), 0x000f000f, 0x43004300); // 128 + code
    a[i] = product2(fma2(biased, one, zero[i & 1]), s[i & 1]);
  }
#endif
}

__device__ __forceinline__ unsigned pack2(float low, float high) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

#if CLUSTER

// Few tokens: the weights come from memory once, straight to registers.

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

#else

// Many tokens: two warpgroups multiply 64 outputs by 256 tokens each, with the weights in registers. A third one
// copies the tokens, 64 inputs at a time, in the 128-byte swizzle of the warpgroup instructions.

constexpr int manyTokens = 256, manyRows = 128, stages = 6, lag = 3;
constexpr int stageBytes = manyTokens * 128, manyBarriers = stages * stageBytes;

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

#define DEQUANTISE_REGISTERS \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15" \
  ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31" \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47" \
  ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63" \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79" \
  ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95" \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111" \
  ",%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define DEQUANTISE_SUM(I) "+f"(d[I][0]), "+f"(d[I][1]), "+f"(d[I][2]), "+f"(d[I][3])
#define DEQUANTISE_SUMS \
  DEQUANTISE_SUM(0), DEQUANTISE_SUM(1), DEQUANTISE_SUM(2), DEQUANTISE_SUM(3), \
  DEQUANTISE_SUM(4), DEQUANTISE_SUM(5), DEQUANTISE_SUM(6), DEQUANTISE_SUM(7), \
  DEQUANTISE_SUM(8), DEQUANTISE_SUM(9), DEQUANTISE_SUM(10), DEQUANTISE_SUM(11), \
  DEQUANTISE_SUM(12), DEQUANTISE_SUM(13), DEQUANTISE_SUM(14), DEQUANTISE_SUM(15), \
  DEQUANTISE_SUM(16), DEQUANTISE_SUM(17), DEQUANTISE_SUM(18), DEQUANTISE_SUM(19), \
  DEQUANTISE_SUM(20), DEQUANTISE_SUM(21), DEQUANTISE_SUM(22), DEQUANTISE_SUM(23), \
  DEQUANTISE_SUM(24), DEQUANTISE_SUM(25), DEQUANTISE_SUM(26), DEQUANTISE_SUM(27), \
  DEQUANTISE_SUM(28), DEQUANTISE_SUM(29), DEQUANTISE_SUM(30), DEQUANTISE_SUM(31)

__device__ __forceinline__ void warpgroup(float (&d)[32][4], const unsigned (&a)[4], unsigned long long b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" DEQUANTISE_REGISTERS
               "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 0;"
               : DEQUANTISE_SUMS
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

// settle stops the compiler from moving uses of the sums across this point.
__device__ __forceinline__ void settle(float (&d)[32][4]) {
#pragma unroll
  for (int i = 0; i < 32; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) asm volatile("" : "+f"(d[i][c])::"memory");
}

template <int N>
__device__ __forceinline__ void finish() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// multiply begins to add 64 inputs.
__device__ __forceinline__ void multiply(float (&d)[32][4], const unsigned (&a)[4][4], unsigned tokens) {
  const unsigned long long b = static_cast<unsigned long long>((tokens & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int step = 0; step < 4; step++) warpgroup(d, a[step], b + 2 * step);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void publish(unsigned full) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
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

// store writes 64 outputs of the tokens, by way of shared memory.
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

// unit is a lane's part of 16 outputs × 64 inputs.
struct unit {
  unsigned codes[4];
  groups g;

  __device__ __forceinline__ void load(const weights& w, int at) {
    w.load(codes, at);
    w.load(g, at);
  }

  __device__ __forceinline__ void dequantise(unsigned (&a)[4][4]) const {
#pragma unroll
    for (int step = 0; step < 4; step++) values(a[step], codes[step], g, step);
  }
};

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

#endif

} // namespace dequantise

#if CLUSTER

// dequantise_few multiplies at most 16 tokens. Blocks: CLUSTER × outputs; each warp has 32 outputs.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(256, 2)
dequantise_few(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  dequantise::multiplyFew(y, x, codes, scales, zeros, m, n, k, scale, dequantise_shared);
}

#else

// dequantise_many multiplies any number of tokens. Blocks: ⌈M/256⌉ × ⌈N/128⌉.
extern "C" __global__ void __launch_bounds__(384, 1)
dequantise_many(bf16* y, const bf16* x, const unsigned* codes, const unsigned char* scales, const unsigned char* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  const unsigned memory = dequantise::sharedAddress(dequantise_shared), full = memory + dequantise::manyBarriers,
                 empty = full + 8 * dequantise::stages;
  if (threadIdx.x == 0)
    for (int i = 0; i < dequantise::stages; i++) {
      dequantise::barrierInit(full + 8 * i, 128);
      dequantise::barrierInit(empty + 8 * i, 8);
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

#endif
