// Products of activations with weights of four-bit codes: y[M,N] = x[M,K]·w[N,K]ᵀ, with w = scale·(code − zero) rounded to
// bfloat16 in registers, before the matrix instructions. Sums are float32. It needs compute capability 9.0.
//
// Macros choose the format: FP4 (codes are E2M1, otherwise unsigned integers), ZEROS (a zero point for every group,
// otherwise 8), GROUP (inputs of a group: 16, 32 or a multiple of 64), SCALE (0: bfloat16, 1: E4M3, 2: E8M0) and
// CLUSTER (blocks that share the inputs of dequantise_few).
//
// Codes lie in units of 16 outputs × 64 inputs, 16 bytes for each lane of a warp: a word for every 16 inputs, with
// the lane's elements of the left operand of m16n8k16 (see pack.go). A strip of 16 outputs has K/64 units in a row. Its scales
// and zero points lie group by group, those of outputs i and i+8 side by side.

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

// product2 adds −0, which keeps the sign of a zero.
__device__ __forceinline__ unsigned product2(unsigned a, unsigned b) { return fma2(a, b, 0x80008000u); }

__device__ __forceinline__ unsigned select(unsigned a, unsigned order) {
  unsigned d;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(d) : "r"(a), "r"(order));
  return d;
}

// unit is a lane's part of 16 outputs × 64 inputs.
struct unit {
  unsigned codes[4];
  unsigned scales[perUnit];
  unsigned zeros[perUnit];
};

// weights are the packed weights on the card.
struct weights {
  const unsigned* codes;
  const void* scales;
  const unsigned short* zeros;
  int units, groups; // of a strip

  __device__ __forceinline__ void load(unit& u, int strip, int at, int lane) const {
    const unsigned* from = codes + (static_cast<long long>(strip) * units + at) * 128 + lane * 4;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(u.codes[0]), "=r"(u.codes[1]), "=r"(u.codes[2]), "=r"(u.codes[3]) : "l"(from));
#pragma unroll
    for (int i = 0; i < perUnit; i++) {
      const int group = perUnit > 1 ? at * perUnit + i : at * 64 / GROUP;
      const long long pair = (static_cast<long long>(strip) * groups + group) * 8 + lane / 4;
#if SCALE == 0
      u.scales[i] = __ldg(static_cast<const unsigned*>(scales) + pair);
#else
      u.scales[i] = __ldg(static_cast<const unsigned short*>(scales) + pair);
#endif
#if ZEROS
      u.zeros[i] = __ldg(zeros + pair);
#endif
    }
  }
};

// scalesOf are a lane's two scales for 16 inputs, each in both halves of a word.
__device__ __forceinline__ void scalesOf(unsigned (&s)[2], const unit& u, int step) {
  const unsigned pair = u.scales[step * perUnit / 4];
#if SCALE == 0
  s[0] = select(pair, 0x1010);
  s[1] = select(pair, 0x3232);
#else
  const unsigned low = select(pair, 0x4040), high = select(pair, 0x4141); // a byte in each half
#if SCALE == 1
  const unsigned scale = 0x7b807b80; // 2^120: the exponents' biases differ by it
  s[0] = product2((low & 0x007f007f) << 4, scale);
  s[1] = product2((high & 0x007f007f) << 4, scale);
#else
  s[0] = low ? low << 7 : 0x00400040;
  s[1] = high ? high << 7 : 0x00400040;
#endif
#endif
}

// values are a lane's elements of the left operand for 16 inputs.
__device__ __forceinline__ void values(unsigned (&a)[4], const unit& u, int step) {
  const unsigned codes = u.codes[step];
  unsigned s[2];
  scalesOf(s, u, step);
#if FP4
  const unsigned sign = 0x80008000, rest = 0x01c001c0, scale = 0x7e807e80; // 2^126: the exponents' biases differ by it
  a[0] = ((codes << 12) & sign) | ((codes << 6) & rest);
  a[1] = ((codes << 8) & sign) | ((codes << 2) & rest);
  a[2] = ((codes << 4) & sign) | ((codes >> 2) & rest);
  a[3] = (codes & sign) | ((codes >> 6) & rest);
#pragma unroll
  for (int i = 0; i < 4; i++) a[i] = product2(product2(a[i], scale), s[i & 1]);
#else
  const unsigned one = 0x3f803f80;
  unsigned zero[2] = {0xc308c308, 0xc308c308}; // −(128 + 8)
#if ZEROS
  const unsigned pair = u.zeros[step * perUnit / 4];
  zero[0] = 0xc300c300 | select(pair, 0x4040);
  zero[1] = 0xc300c300 | select(pair, 0x4141);
#endif
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const unsigned biased = ((codes >> (4 * i)) & 0x000f000f) | 0x43004300; // 128 + code
    a[i] = product2(fma2(biased, one, zero[i & 1]), s[i & 1]);
  }
#endif
}

__device__ __forceinline__ unsigned pack2(float low, float high) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

// Few tokens: the weights come from memory once, straight to registers.

constexpr int fewTokens = 16, fewRows = 256, fewThreads = 256, sumPitch = 260, ahead = 4;

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

// few multiplies 256 outputs by a block's share of the inputs. Every warp has two strips. The blocks of a cluster
// add up their sums, each for its share of the outputs.
__device__ __forceinline__ void few(bf16* y, const bf16* x, const weights& w, int m, int n, int k, float scale,
                                    unsigned char* memory) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, rank = blockIdx.x;
  const int first = w.units * rank / CLUSTER, last = w.units * (rank + 1) / CLUSTER;
  const int strips = (n + 15) / 16, strip = blockIdx.y * (fewRows / 16) + 2 * warp;
  const bool active[2] = {strip < strips, strip + 1 < strips};
  unit next[ahead][2];
#pragma unroll
  for (int d = 0; d < ahead; d++)
#pragma unroll
    for (int i = 0; i < 2; i++)
      if (active[i] && first + d < last) w.load(next[d][i], strip + i, first + d, lane);

  float* sums = reinterpret_cast<float*>(memory);
  const unsigned tokens = sharedAddress(memory + 4 * fewTokens * sumPitch);
  const int chunks = (last - first) * 8, pitch = chunks * 16 + 16;
  for (int i = threadIdx.x; i < fewTokens * chunks; i += fewThreads) {
    const int token = i / chunks, chunk = i - token * chunks;
    const bool valid = token < m;
    copy16(tokens + token * pitch + chunk * 16, x + static_cast<long long>(valid ? token : 0) * k + first * 64 + chunk * 8, valid);
  }
  commit();
  wait<0>();
  __syncthreads();

  float d[2][2][4] = {};
  const unsigned mine = tokens + ((lane & 7) + (lane >> 4) * 8) * pitch + (lane >> 3 & 1) * 16;
  for (int at = first; at < last; at += ahead) {
#pragma unroll
    for (int s = 0; s < ahead; s++) {
      if (at + s >= last) break;
#pragma unroll
      for (int step = 0; step < 4; step++) {
        unsigned b[4];
        load4(b, mine + (at + s - first) * 128 + step * 32);
#pragma unroll
        for (int i = 0; i < 2; i++) {
          unsigned a[4];
          values(a, next[s][i], step);
          mma(d[i][0], a, b[0], b[1]);
          mma(d[i][1], a, b[2], b[3]);
        }
      }
#pragma unroll
      for (int i = 0; i < 2; i++)
        if (active[i] && at + s + ahead < last) w.load(next[s][i], strip + i, at + s + ahead, lane);
    }
  }

#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
      for (int c = 0; c < 4; c++)
        sums[(j * 8 + (lane & 3) * 2 + (c & 1)) * sumPitch + (2 * warp + i) * 16 + lane / 4 + (c >> 1) * 8] = d[i][j][c];
  clusterSync();
  constexpr int share = fewRows / CLUSTER;
  for (int i = threadIdx.x; i < fewTokens * share; i += fewThreads) {
    const int token = i / share, row = rank * share + i % share, out = blockIdx.y * fewRows + row;
    float sum = 0;
#pragma unroll
    for (int r = 0; r < CLUSTER; r++) sum += remote(sharedAddress(sums + token * sumPitch + row), r);
    if (token < m && out < n) y[static_cast<long long>(token) * n + out] = static_cast<bf16>(pack2(sum * scale, 0));
  }
  clusterSync();
}

// Many tokens: two warpgroups multiply 64 outputs by 256 tokens each, with the weights in registers. A third one
// copies the tokens, 64 inputs at a time, in the 128-byte swizzle of the warpgroup instructions.

constexpr int manyTokens = 256, manyRows = 128, manyThreads = 384, stages = 6, lag = 3;
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

// consume multiplies. Weights are loaded two units ahead and dequantised one unit ahead, beside the matrix instructions.
__device__ __forceinline__ void consume(bf16* y, const weights& w, int m, int n, float scale, unsigned memory, unsigned full,
                                        unsigned empty) {
  const int lane = threadIdx.x & 31, group = threadIdx.x >> 7, strip = blockIdx.y * (manyRows / 16) + (threadIdx.x >> 5);
  const int count = w.units;
  const bool leader = lane == 0;
  float d[32][4];
#pragma unroll
  for (int i = 0; i < 32; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) d[i][c] = 0;
  unit next[2];
  unsigned a[2][4][4];
  w.load(next[0], strip, 0, lane);
  w.load(next[1], strip, count > 1 ? 1 : 0, lane);
#pragma unroll
  for (int step = 0; step < 4; step++) values(a[0][step], next[0], step);
  w.load(next[0], strip, count > 2 ? 2 : 0, lane);
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
#pragma unroll
      for (int step = 0; step < 4; step++) values(a[odd ^ 1][step], next[odd ^ 1], step);
      w.load(next[odd ^ 1], strip, at + 3 < count ? at + 3 : 0, lane);
    }
  }
  finish<0>();
  settle(d);
  asm volatile("bar.sync 1, 256;" ::: "memory");
  store(y, d, m, n, scale, memory, group);
}

} // namespace dequantise

// dequantise_few multiplies at most 16 tokens. Blocks: CLUSTER × ⌈N/256⌉.
extern "C" __global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(256)
dequantise_few(bf16* y, const bf16* x, const unsigned* codes, const unsigned* scales, const unsigned short* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  const dequantise::weights w = {codes, scales, zeros, k / 64, GROUP < k ? k / GROUP : 1};
  dequantise::few(y, x, w, m, n, k, scale, dequantise_shared);
}

// dequantise_many multiplies any number of tokens. Blocks: ⌈M/256⌉ × ⌈N/128⌉.
extern "C" __global__ void __launch_bounds__(384, 1)
dequantise_many(bf16* y, const bf16* x, const unsigned* codes, const unsigned* scales, const unsigned short* zeros, int m, int n, int k, float scale) {
  extern __shared__ __align__(1024) unsigned char dequantise_shared[];
  const dequantise::weights w = {codes, scales, zeros, k / 64, GROUP < k ? k / GROUP : 1};
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
    dequantise::consume(y, w, m, n, scale, memory, full, empty);
  }
}
