// Attention kernels: causal attention over packed sequences (prefill), and one
// query token per sequence against a key/value cache (decode).
//
// The file is compiled with NVRTC (--std=c++17) after ptx.cu of package cuda, and
// includes nothing. It needs sm_80 or newer. Built for sm_90a, prefill uses
// warpgroup matrix instructions at head sizes 64, 128 and 256. By default every
// entry point is compiled;
// -DATTENTION_TYPE=bf16 -DATTENTION_HEAD=128 compiles those of one element type
// and head size.
//
// Every pointer must be 16-byte aligned; every stride, base and step must be a
// multiple of 8 elements; queries must be a multiple of kv. scale must be
// positive. cap 0 is no cap and window 0 no window.

namespace attention {

using namespace ptx;

typedef unsigned short element;

constexpr float log2e = 1.4426950408889634f;

__device__ __forceinline__ float negativeInfinity() { return __int_as_float(0xff800000); }

__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// softCap returns cap*tanh(x/cap). Its absolute error is a few 1e-7 of cap,
// where the hardware's tanh would have 5e-4.
__device__ __forceinline__ float softCap(float x, float cap, float inverse) {
  return cap - 2 * cap * reciprocal(exp2(2 * log2e * inverse * x) + 1);
}

__device__ __forceinline__ int smaller(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int larger(int a, int b) { return a > b ? a : b; }

// The two element types: pack rounds two floats to a register, the first in the
// low half; mma is d += a*b of a 16x8x16 tile.
struct bf16 {
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct f16 {
  static __device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

__device__ __forceinline__ void load4Transposed(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

// layout places ROWS rows of D elements in shared memory, in 16-byte chunks, so
// that eight rows of one chunk lie in different banks. Head sizes that are a
// multiple of 64 use blocks of 64 columns with the 128-byte swizzle of the
// warpgroup instructions; others pad the rows.
template <int D, int ROWS>
struct layout {
  static constexpr bool blocked = D % 64 == 0;
  static constexpr int pitch = blocked ? 128 : 2 * D + 16;
  static constexpr int bytes = blocked ? 2 * D * ROWS : pitch * ROWS;
  static __device__ __forceinline__ unsigned at(int row, int chunk) {
    if constexpr (blocked)
      return (chunk >> 3) * (ROWS * 128) + row * 128 + (((chunk ^ row) & 7) << 4);
    else
      return row * pitch + chunk * 16;
  }
};

// fill starts the copy of rows first .. first+ROWS-1 by THREADS threads. Rows
// from end on become zero.
template <int D, int ROWS, int THREADS>
__device__ __forceinline__ void fill(unsigned to, const element* from, long long stride, int first, int end, int thread) {
  constexpr int chunks = D / 8;
  if constexpr (layout<D, ROWS>::blocked) {
    constexpr int step = THREADS / 8; // a multiple of 8: the swizzle stays the same
    const int row = thread / 8;
    const unsigned at = to + layout<D, ROWS>::at(row, thread % 8);
    const element* p = from + (first + row) * stride + thread % 8 * 8;
#pragma unroll
    for (int i = 0; i * step < ROWS; i++)
      if (ROWS % step == 0 || row + i * step < ROWS)
#pragma unroll
        for (int block = 0; block < D / 64; block++)
          copy16(at + i * step * 128 + block * ROWS * 128, p + i * step * stride + block * 64, first + row + i * step < end);
  } else {
#pragma unroll
    for (int i = 0; i < ROWS * chunks; i += THREADS) {
      const int at = i + thread, row = at / chunks, chunk = at % chunks;
      if (ROWS * chunks % THREADS == 0 || row < ROWS)
        copy16(to + layout<D, ROWS>::at(row, chunk), from + (first + row) * stride + chunk * 8, first + row < end);
    }
  }
}

// Scores and outputs are held as the matrix instructions leave them: of tile i
// of 8 columns a thread has elements 0, 1 of row lane/4 and 2, 3 of row
// lane/4+8, at columns 8*i + 2*(lane%4) and the next.

// mask hides the keys after a query and those before its window. row is the
// thread's first query, key its first key.
template <int N>
__device__ __forceinline__ void mask(float (&s)[N][4], int row, int key, int window) {
#pragma unroll
  for (int c = 0; c < 4; c++) {
    const int query = row + (c >> 1) * 8, before = window > 0 ? query - window : -1;
#pragma unroll
    for (int i = 0; i < N; i++) {
      const int k = key + 8 * i + (c & 1);
      if (k > query || k <= before) s[i][c] = negativeInfinity();
    }
  }
}

template <int N>
__device__ __forceinline__ void softCapAll(float (&s)[N][4], float scale, float cap) {
  const float inverse = scale / cap;
#pragma unroll
  for (int i = 0; i < N; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) s[i][c] = softCap(s[i][c], cap, inverse);
}

// online is one step of the online softmax. It replaces scores by weights, and
// returns in fix the factors for the sums so far. scale includes log2(e); max
// has the unscaled maxima, sum the thread's share of the sums.
template <int N>
__device__ __forceinline__ void online(float (&s)[N][4], float (&max)[2], float (&sum)[2], float (&fix)[2], float scale) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float m = max[r];
#pragma unroll
    for (int i = 0; i < N; i++) m = fmaxf(m, fmaxf(s[i][2 * r], s[i][2 * r + 1]));
    m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 1));
    m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, 2));
    const float base = m == negativeInfinity() ? 0 : m * scale;
    fix[r] = exp2(max[r] * scale - base);
    max[r] = m;
    float total = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      s[i][2 * r] = exp2(s[i][2 * r] * scale - base);
      s[i][2 * r + 1] = exp2(s[i][2 * r + 1] * scale - base);
      total += s[i][2 * r] + s[i][2 * r + 1];
    }
    sum[r] = sum[r] * fix[r] + total;
  }
}

template <int N>
__device__ __forceinline__ void rescale(float (&o)[N][4], const float (&fix)[2]) {
#pragma unroll
  for (int i = 0; i < N; i++) {
    o[i][0] *= fix[0];
    o[i][1] *= fix[0];
    o[i][2] *= fix[1];
    o[i][3] *= fix[1];
  }
}

// weights packs the scores of 16 keys as an A operand.
template <class T, int N>
__device__ __forceinline__ void weights(unsigned (&a)[4], const float (&s)[N][4], int k) {
  a[0] = T::pack(s[2 * k][0], s[2 * k][1]);
  a[1] = T::pack(s[2 * k][2], s[2 * k][3]);
  a[2] = T::pack(s[2 * k + 1][0], s[2 * k + 1][1]);
  a[3] = T::pack(s[2 * k + 1][2], s[2 * k + 1][3]);
}

// inverses returns one over the rows' sums over the four threads of a row.
__device__ __forceinline__ void inverses(float (&sum)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += __shfl_xor_sync(0xffffffff, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffff, sum[r], 2);
    sum[r] = sum[r] > 0 ? 1 / sum[r] : 0;
  }
}

// job is what one block of prefill computes.
struct job {
  const element *q, *k, *v; // column of the head, row 0 of the sequence
  element* out;
  int first, length; // first query, queries of the sequence
  int from, to;      // key tiles
  bool empty;
};

// jobOf hands out the tiles with the most keys first, whatever their sequence.
template <int QUERIES, int KEYS, int D>
__device__ __forceinline__ job jobOf(const element* qkv, element* out, const int* starts, int stride, int outStride,
                                     int queries, int kv, int qGroupStep, int keyBase, int keyStep, int valueBase,
                                     int valueStep, int window) {
  const unsigned others = gridDim.y * gridDim.z;
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const int tile = gridDim.x - 1 - block / others;
  const int head = block % others % gridDim.y, sequence = block % others / gridDim.y;
  const int group = queries / kv, start = starts[sequence];
  job j;
  j.first = tile * QUERIES;
  j.length = starts[sequence + 1] - start;
  j.empty = j.first >= j.length;
  j.from = window > 0 ? larger(0, j.first - window + 1) / KEYS : 0;
  j.to = (smaller(j.first + QUERIES, j.length) + KEYS - 1) / KEYS;
  const element* rows = qkv + static_cast<long long>(start) * stride;
  j.q = rows + head / group * qGroupStep + head % group * D;
  j.k = rows + keyBase + head / group * keyStep;
  j.v = rows + valueBase + head / group * valueStep;
  j.out = out + static_cast<long long>(start) * outStride + head * D;
  return j;
}

// store writes 16 rows of outputs of one warp through the shared memory of its
// queries, whose rows row .. row+15 no other thread reads any more.
template <class T, int D, int ROWS>
__device__ __forceinline__ void store(const float (&o)[D / 8][4], const float (&inverse)[2], unsigned shared, int row,
                                      const job& j, int outStride) {
  constexpr int chunks = D / 8;
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int i = 0; i < chunks; i++)
#pragma unroll
    for (int r = 0; r < 2; r++)
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared + layout<D, ROWS>::at(row + lane / 4 + 8 * r, i) + lane % 4 * 4),
                   "r"(T::pack(o[i][2 * r] * inverse[r], o[i][2 * r + 1] * inverse[r])) : "memory");
  __syncwarp();
#pragma unroll
  for (int i = 0; i < 16 * chunks; i += 32) {
    const int at = i + lane, r = row + at / chunks, chunk = at % chunks;
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(shared + layout<D, ROWS>::at(r, chunk)) : "memory");
    if (j.first + r < j.length)
      *reinterpret_cast<uint4*>(j.out + static_cast<long long>(j.first + r) * outStride + chunk * 8) = x;
  }
}

// tiled is prefill with warp matrix instructions: WARPS warps of MT*16 queries
// each, tiles of KEYS keys, keys and values double-buffered.
template <int D, int WARPS, int MT, int KEYS>
struct tiled {
  static constexpr int threads = 32 * WARPS, queries = 16 * MT * WARPS, keys = KEYS;
  static constexpr int shared = layout<D, queries>::bytes + 4 * layout<D, KEYS>::bytes;

  template <class T>
  static __device__ __forceinline__ void run(const job& j, int stride, int outStride, float scale, float cap, int window) {
    extern __shared__ __align__(1024) unsigned char attention_shared[];
    typedef layout<D, queries> rows;
    typedef layout<D, KEYS> tile;
    const unsigned q = sharedAddress(attention_shared), k = q + rows::bytes, v = k + 2 * tile::bytes;
    const int lane = threadIdx.x & 31, warpRow = threadIdx.x / 32 * 16 * MT;
    float o[MT][D / 8][4], max[MT][2], sum[MT][2];
#pragma unroll
    for (int t = 0; t < MT; t++) {
#pragma unroll
      for (int i = 0; i < D / 8; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) o[t][i][c] = 0;
      max[t][0] = max[t][1] = negativeInfinity();
      sum[t][0] = sum[t][1] = 0;
    }
    fill<D, queries, threads>(q, j.q, stride, j.first, j.length, threadIdx.x);
    fill<D, KEYS, threads>(k, j.k, stride, j.from * KEYS, j.length, threadIdx.x);
    commit();
    fill<D, KEYS, threads>(v, j.v, stride, j.from * KEYS, j.length, threadIdx.x);
    commit();
    for (int n = j.from, b = 0; n < j.to; n++, b ^= 1) {
      wait<1>();
      __syncthreads();
      if (n + 1 < j.to) fill<D, KEYS, threads>(k + (b ^ 1) * tile::bytes, j.k, stride, (n + 1) * KEYS, j.length, threadIdx.x);
      commit();
      float s[MT][KEYS / 8][4];
#pragma unroll
      for (int t = 0; t < MT; t++)
#pragma unroll
        for (int i = 0; i < KEYS / 8; i++)
#pragma unroll
          for (int c = 0; c < 4; c++) s[t][i][c] = 0;
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        unsigned a[MT][4];
#pragma unroll
        for (int t = 0; t < MT; t++) load4(a[t], q + rows::at(warpRow + 16 * t + (lane & 15), 2 * d + (lane >> 4)));
#pragma unroll
        for (int i = 0; i < KEYS / 16; i++) {
          unsigned x[4];
          load4(x, k + b * tile::bytes + tile::at(16 * i + (lane & 7) + (lane >> 4) * 8, 2 * d + (lane >> 3 & 1)));
#pragma unroll
          for (int t = 0; t < MT; t++) {
            T::mma(s[t][2 * i], a[t], x[0], x[1]);
            T::mma(s[t][2 * i + 1], a[t], x[2], x[3]);
          }
        }
      }
      const int last = n * KEYS + KEYS - 1;
#pragma unroll
      for (int t = 0; t < MT; t++) {
        const int row = j.first + warpRow + 16 * t;
        if (cap > 0) softCapAll(s[t], scale, cap);
        if (last > row || (window > 0 && n * KEYS <= row + 15 - window))
          mask(s[t], row + lane / 4, n * KEYS + lane % 4 * 2, window);
        float fix[2];
        online(s[t], max[t], sum[t], fix, cap > 0 ? log2e : scale * log2e);
        rescale(o[t], fix);
      }
      wait<1>();
      __syncthreads();
      if (n + 1 < j.to) fill<D, KEYS, threads>(v + (b ^ 1) * tile::bytes, j.v, stride, (n + 1) * KEYS, j.length, threadIdx.x);
      commit();
#pragma unroll
      for (int i = 0; i < KEYS / 16; i++) {
        unsigned a[MT][4];
#pragma unroll
        for (int t = 0; t < MT; t++) weights<T>(a[t], s[t], i);
#pragma unroll
        for (int d = 0; d < D / 16; d++) {
          unsigned x[4];
          load4Transposed(x, v + b * tile::bytes + tile::at(16 * i + (lane & 15), 2 * d + (lane >> 4)));
#pragma unroll
          for (int t = 0; t < MT; t++) {
            T::mma(o[t][2 * d], a[t], x[0], x[1]);
            T::mma(o[t][2 * d + 1], a[t], x[2], x[3]);
          }
        }
      }
    }
    wait<0>();
#pragma unroll
    for (int t = 0; t < MT; t++) {
      inverses(sum[t]);
      store<T, D, queries>(o[t], sum[t], q, warpRow + 16 * t, j, outStride);
    }
  }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The warpgroup matrix instructions: scores is d = a*b (or +=) of 64 queries
// and N keys, both in shared memory; values is d += a*b of weights in registers
// and N columns of the values in shared memory.
template <class T, int N>
struct warpgroup;

#define ATTENTION_OUT1(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define ATTENTION_OUT8(i)                                                                                       \
  ATTENTION_OUT1(i), ATTENTION_OUT1(i + 1), ATTENTION_OUT1(i + 2), ATTENTION_OUT1(i + 3), ATTENTION_OUT1(i + 4), \
      ATTENTION_OUT1(i + 5), ATTENTION_OUT1(i + 6), ATTENTION_OUT1(i + 7)
#define ATTENTION_OUT64 ATTENTION_OUT8(0)
#define ATTENTION_OUT128 ATTENTION_OUT8(0), ATTENTION_OUT8(8)
#define ATTENTION_OUT256 ATTENTION_OUT8(0), ATTENTION_OUT8(8), ATTENTION_OUT8(16), ATTENTION_OUT8(24)
#define ATTENTION_REGS64 \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ATTENTION_REGS128 \
  ATTENTION_REGS64 \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define ATTENTION_REGS256 \
  ATTENTION_REGS128 \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95" \
  ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"

#define ATTENTION_WARPGROUP(T, TYPE, N, A0, A1, A2, A3, A4, A5)                                                     \
  template <>                                                                                                       \
  struct warpgroup<T, N> {                                                                                          \
    static __device__ __forceinline__ void scores(float (&d)[N / 8][4], unsigned long long a, unsigned long long b, \
                                                  int add) {                                                        \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" A2 ", 0;\n"                                                 \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" ATTENTION_REGS##N "}, %" A0 \
                   ", %" A1 ", p, 1, 1, 0, 0;\n}"                                                                   \
                   : ATTENTION_OUT##N                                                                               \
                   : "l"(a), "l"(b), "r"(add));                                                                     \
    }                                                                                                               \
    static __device__ __forceinline__ void values(float (&d)[N / 8][4], const unsigned (&a)[4],                     \
                                                  unsigned long long b) {                                           \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" A5 ", 0;\n"                                                 \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" ATTENTION_REGS##N           \
                   "}, {%" A0 ", %" A1 ", %" A2 ", %" A3 "}, %" A4 ", p, 1, 1, 1;\n}"                               \
                   : ATTENTION_OUT##N                                                                               \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));                                   \
    }                                                                                                               \
  };

ATTENTION_WARPGROUP(bf16, "bf16", 64, "32", "33", "34", "35", "36", "37")
ATTENTION_WARPGROUP(bf16, "bf16", 128, "64", "65", "66", "67", "68", "69")
ATTENTION_WARPGROUP(bf16, "bf16", 256, "128", "129", "130", "131", "132", "133")
ATTENTION_WARPGROUP(f16, "f16", 64, "32", "33", "34", "35", "36", "37")
ATTENTION_WARPGROUP(f16, "f16", 128, "64", "65", "66", "67", "68", "69")
ATTENTION_WARPGROUP(f16, "f16", 256, "128", "129", "130", "131", "132", "133")

// specialised is prefill with warpgroup matrix instructions: GROUPS warpgroups
// compute 64 queries each, and one more copies tiles of KEYS keys and values,
// which are double-buffered. The scores of a tile and the outputs of the tile
// before it are in flight together, so that the softmax runs beside the second
// product. The warpgroups that compute share no barrier in the loop: one's
// softmax also runs beside another's products.
template <int D, int GROUPS, int KEYS>
struct specialised {
  static constexpr int threads = 128 * (GROUPS + 1), queries = 64 * GROUPS, keys = KEYS;
  static constexpr int tile = layout<D, KEYS>::bytes, group = layout<D, 64>::bytes;
  static constexpr int barriers = GROUPS * group + 4 * tile, shared = barriers + 64;
  static_assert(GROUPS == 2 || GROUPS == 3, "the register counts below are for two or three warpgroups");

  // Offsets of the barriers of slot 0. Those of slot 1 follow 8 bytes later.
  static constexpr int fullKeys = 0, fullValues = 16, emptyKeys = 32, emptyValues = 48;

  template <class T>
  static __device__ __forceinline__ void multiplyScores(float (&s)[KEYS / 8][4], unsigned q, unsigned k) {
    const unsigned long long a = descriptor(q, 16), b = descriptor(k, 16);
#pragma unroll
    for (int d = 0; d < D / 16; d++)
      warpgroup<T, KEYS>::scores(s, a + (d / 4 * (64 * 128) + d % 4 * 32) / 16, b + (d / 4 * (KEYS * 128) + d % 4 * 32) / 16,
                                 d > 0);
    issue();
  }

  template <class T>
  static __device__ __forceinline__ void multiplyValues(float (&o)[D / 8][4], const unsigned (&p)[KEYS / 16][4], unsigned v) {
    const unsigned long long b = descriptor(v, KEYS * 128);
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) warpgroup<T, D>::values(o, p[i], b + i * 2048 / 16);
    issue();
  }

  static __device__ __forceinline__ void soften(float (&s)[KEYS / 8][4], float (&max)[2], float (&sum)[2], float (&fix)[2],
                                                int row, int key, float scale, float cap, int window) {
    const int lane = threadIdx.x & 31;
    if (cap > 0) softCapAll(s, scale, cap);
    if (key + KEYS - 1 > row || (window > 0 && key <= row + 15 - window)) mask(s, row + lane / 4, key + lane % 4 * 2, window);
    online(s, max, sum, fix, cap > 0 ? log2e : scale * log2e);
  }

  // publish makes the tiles visible to the matrix instructions, except the PENDING
  // ones copied last, and signals the barrier of the newest visible tile.
  template <int PENDING>
  static __device__ __forceinline__ void publish(unsigned barrier) {
    wait<PENDING>();
    fence();
    barrierArrive(barrier);
  }

  static __device__ __forceinline__ void produce(const job& j, int stride, unsigned k, unsigned v, unsigned bars) {
    const int thread = threadIdx.x - 128 * GROUPS, count = j.to - j.from;
    unsigned pending = bars + fullKeys;
    fill<D, KEYS, 128>(k, j.k, stride, j.from * KEYS, j.length, thread);
    commit();
    for (int i = 1; i <= count; i++) {
      const int slot = i & 1, parity = (i >> 1 & 1) ^ 1, before = slot ^ 1;
      if (i < count) {
        barrierWait(bars + emptyKeys + 8 * slot, parity);
        fill<D, KEYS, 128>(k + slot * tile, j.k, stride, (j.from + i) * KEYS, j.length, thread);
        commit();
        publish<1>(pending);
        pending = bars + fullKeys + 8 * slot;
      }
      barrierWait(bars + emptyValues + 8 * before, ((i - 1) >> 1 & 1) ^ 1);
      fill<D, KEYS, 128>(v + before * tile, j.v, stride, (j.from + i - 1) * KEYS, j.length, thread);
      commit();
      publish<1>(pending);
      pending = bars + fullValues + 8 * before;
    }
    publish<0>(pending);
  }

  template <class T>
  static __device__ __forceinline__ void consume(const job& j, int stride, int outStride, float scale, float cap,
                                                 int window, unsigned q, unsigned k, unsigned v, unsigned bars) {
    const int index = threadIdx.x / 128, warpRow = threadIdx.x % 128 / 32 * 16, count = j.to - j.from;
    const bool leader = threadIdx.x % 32 == 0;
    job mine = j;
    mine.first += 64 * index;
    const int row = mine.first + warpRow;
    q += index * group;
    float o[D / 8][4], s[KEYS / 8][4], max[2], sum[2], fix[2];
    unsigned p[KEYS / 16][4];
    fill<D, 64, 128>(q, j.q, stride, mine.first, j.length, threadIdx.x % 128);
    commit();
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
      for (int c = 0; c < 4; c++) o[i][c] = 0;
    max[0] = max[1] = negativeInfinity();
    sum[0] = sum[1] = 0;
    wait<0>();
    fence();
    asm volatile("bar.sync %0, 128;" ::"r"(1 + index) : "memory");

    barrierWait(bars + fullKeys, 0);
    begin();
    multiplyScores<T>(s, q, k);
    finish<0>();
    settle(s);
    if (leader) barrierArrive(bars + emptyKeys);
    soften(s, max, sum, fix, row, j.from * KEYS, scale, cap, window);
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) weights<T>(p[i], s, i);

    for (int i = 1; i < count; i++) {
      const int slot = i & 1, before = slot ^ 1;
      barrierWait(bars + fullKeys + 8 * slot, i >> 1 & 1);
      settle(o);
      begin();
      multiplyScores<T>(s, q, k + slot * tile);
      barrierWait(bars + fullValues + 8 * before, (i - 1) >> 1 & 1);
      multiplyValues<T>(o, p, v + before * tile);
      finish<1>();
      settle(s);
      if (leader) barrierArrive(bars + emptyKeys + 8 * slot);
      soften(s, max, sum, fix, row, (j.from + i) * KEYS, scale, cap, window);
      finish<0>();
      settle(o);
      if (leader) barrierArrive(bars + emptyValues + 8 * before);
      rescale(o, fix);
#pragma unroll
      for (int i = 0; i < KEYS / 16; i++) weights<T>(p[i], s, i);
    }
    const int slot = (count - 1) & 1;
    barrierWait(bars + fullValues + 8 * slot, (count - 1) >> 1 & 1);
    settle(o);
    begin();
    multiplyValues<T>(o, p, v + slot * tile);
    finish<0>();
    settle(o);
    inverses(sum);
    asm volatile("bar.sync %0, 128;" ::"r"(1 + index) : "memory");
    store<T, D, 64>(o, sum, q, warpRow, mine, outStride);
  }

  template <class T>
  static __device__ __forceinline__ void run(const job& j, int stride, int outStride, float scale, float cap, int window) {
    extern __shared__ __align__(1024) unsigned char attention_shared[];
    const unsigned q = sharedAddress(attention_shared), k = q + GROUPS * group, v = k + 2 * tile, bars = q + barriers;
    if (threadIdx.x == 0)
      for (int i = 0; i < 2; i++) {
        barrierInit(bars + fullKeys + 8 * i, 128);
        barrierInit(bars + fullValues + 8 * i, 128);
        barrierInit(bars + emptyKeys + 8 * i, 4 * GROUPS);
        barrierInit(bars + emptyValues + 8 * i, 4 * GROUPS);
      }
    __syncthreads();
    if (threadIdx.x >= 128 * GROUPS) {
      if constexpr (GROUPS == 2)
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      else
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
      produce(j, stride, k, v, bars);
    } else {
      if constexpr (GROUPS == 2)
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      else
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
      consume<T>(j, stride, outStride, scale, cap, window, q, k, v, bars);
    }
  }
};

#endif

// shape chooses the kernel of a head size.
template <int D>
struct shape : tiled<D, 4, 2, 64> {};
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <>
struct shape<64> : specialised<64, 3, 128> {};
template <>
struct shape<128> : specialised<128, 2, 128> {};
template <>
struct shape<256> : specialised<256, 2, 64> {};
#else
template <>
struct shape<256> : tiled<256, 4, 1, 32> {};
#endif

// launchShape checks the tables of the entry points below.
template <int D>
__device__ constexpr bool launchShape(int tile, int threads, int shared) {
  return shape<D>::queries == tile && shape<D>::threads == threads && shape<D>::shared == shared;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
static_assert(launchShape<64>(192, 512, 90176), "");
static_assert(launchShape<128>(128, 384, 163904), "");
static_assert(launchShape<256>(128, 384, 196672), "");
#else
static_assert(launchShape<64>(128, 128, 49152), "");
static_assert(launchShape<128>(128, 128, 98304), "");
static_assert(launchShape<256>(64, 128, 98304), "");
#endif
static_assert(launchShape<80>(128, 128, 67584), "");
static_assert(launchShape<96>(128, 128, 79872), "");

// generation computes one token for each sequence. Each warp of a block runs over its
// own blocks of 16 keys, with its own ring of copies in flight; the warps, then
// the blocks of a sequence's splits, add up their sums. The block that ends last
// adds up the splits in order, so the result is deterministic.
template <class T, int D>
struct generation {
  static constexpr int warps = D > 128 ? 2 : 4, threads = 32 * warps, stages = D >= 96 ? 3 : D == 80 ? 4 : 6;
  static constexpr int tile = layout<D, 16>::bytes, shared = warps * stages * 2 * tile;
  static constexpr int pitch = D + 2; // of a split's partial sums: outputs, maximum, sum

  static __device__ __forceinline__ void fillTile(unsigned to, const element* from, int first, int end) {
    const int lane = threadIdx.x & 31;
    const element* p = from + static_cast<long long>(first) * D + lane * 8;
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
      const int at = i * 32 + lane, row = at / (D / 8), chunk = at % (D / 8);
      copy16(to + layout<D, 16>::at(row, chunk), p + i * 256, first + row < end);
    }
  }

  static __device__ __forceinline__ void run(const element* qkv, const element* keys, const element* values,
                                             const int* lengths, element* out, float* partial, int* counters, int stride,
                                             int outStride, int queries, int kv, int qGroupStep, int capacity, float scale,
                                             float cap, int window, int splits) {
    extern __shared__ __align__(1024) unsigned char attention_shared[];
    const int split = blockIdx.x, head = blockIdx.y, sequence = blockIdx.z, group = queries / kv;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int length = smaller(lengths[sequence], capacity), low = window > 0 ? larger(0, length - window) : 0;
    const int part = ((length - low + splits - 1) / splits + 16 * warps - 1) / (16 * warps) * (16 * warps);
    const int from = low + split * part, to = smaller(from + part, length);
    const long long pair = static_cast<long long>(sequence) * kv + head;
    keys += pair * capacity * D;
    values += pair * capacity * D;
    const unsigned ring = sharedAddress(attention_shared) + warp * (stages * 2 * tile);
    const float power = cap > 0 ? log2e : scale * log2e;

#pragma unroll
    for (int i = 0; i < stages - 1; i++) {
      const int first = from + (i * warps + warp) * 16;
      if (first < to) {
        fillTile(ring + i * 2 * tile, keys, first, to);
        fillTile(ring + i * 2 * tile + tile, values, first, to);
      }
      commit();
    }

    unsigned q[D / 16][4];
    const element* rows = qkv + static_cast<long long>(sequence) * stride + head * qGroupStep;
#pragma unroll
    for (int d = 0; d < D / 16; d++)
#pragma unroll
      for (int c = 0; c < 4; c++) {
        const int row = lane / 4 + (c & 1) * 8, column = 16 * d + lane % 4 * 2 + (c >> 1) * 8;
        q[d][c] = row < group ? *reinterpret_cast<const unsigned*>(rows + row * D + column) : 0;
      }

    float o[D / 8][4], max[2], sum[2];
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
      for (int c = 0; c < 4; c++) o[i][c] = 0;
    max[0] = max[1] = negativeInfinity();
    sum[0] = sum[1] = 0;

    int slot = 0;
    for (int first = from + warp * 16; first < to; first += 16 * warps) {
      wait<stages - 2>();
      __syncwarp();
      const int next = first + (stages - 1) * 16 * warps, free = slot == 0 ? stages - 1 : slot - 1;
      if (next < to) {
        fillTile(ring + free * 2 * tile, keys, next, to);
        fillTile(ring + free * 2 * tile + tile, values, next, to);
      }
      commit();
      const unsigned k = ring + slot * 2 * tile, v = k + tile;
      slot = slot == stages - 1 ? 0 : slot + 1;

      float s[2][4], fix[2];
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int c = 0; c < 4; c++) s[i][c] = 0;
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        unsigned x[4];
        load4(x, k + layout<D, 16>::at((lane & 7) + (lane >> 4) * 8, 2 * d + (lane >> 3 & 1)));
        T::mma(s[0], q[d], x[0], x[1]);
        T::mma(s[1], q[d], x[2], x[3]);
      }
      if (cap > 0) softCapAll(s, scale, cap);
      if (first + 16 > to) {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
          for (int c = 0; c < 4; c++)
            if (first + 8 * i + lane % 4 * 2 + (c & 1) >= to) s[i][c] = negativeInfinity();
      }
      online(s, max, sum, fix, power);
      if (__any_sync(0xffffffff, fix[0] != 1 || fix[1] != 1)) rescale(o, fix);
      unsigned a[4];
      weights<T>(a, s, 0);
#pragma unroll
      for (int d = 0; d < D / 16; d++) {
        unsigned x[4];
        load4Transposed(x, v + layout<D, 16>::at(lane & 15, 2 * d + (lane >> 4)));
        T::mma(o[2 * d], a, x[0], x[1]);
        T::mma(o[2 * d + 1], a, x[2], x[3]);
      }
    }
    wait<0>();
    __syncthreads();

    float* sums = reinterpret_cast<float*>(attention_shared); // [warps][16][pitch]
#pragma unroll
    for (int r = 0; r < 2; r++) {
      sum[r] += __shfl_xor_sync(0xffffffff, sum[r], 1);
      sum[r] += __shfl_xor_sync(0xffffffff, sum[r], 2);
      const int row = lane / 4 + 8 * r;
      float* w = sums + (warp * 16 + row) * pitch;
      if (row < group) {
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
          w[8 * i + lane % 4 * 2] = o[i][2 * r];
          w[8 * i + lane % 4 * 2 + 1] = o[i][2 * r + 1];
        }
        if (lane % 4 == 0) {
          w[D] = max[r] * power;
          w[D + 1] = sum[r];
        }
      }
    }
    __syncthreads();
    out += static_cast<long long>(sequence) * outStride + head * group * D;
    float* mine = partial + (pair * splits + split) * group * pitch;
    for (int i = threadIdx.x * 2; i < group * D; i += 2 * threads) {
      const int row = i / D, column = i % D;
      float x, y, top, total;
      merge<false>(sums + row * pitch, 16 * pitch, warps, column, x, y, top, total);
      if (splits == 1) {
        write(out + i, x, y, total);
        continue;
      }
      float* w = mine + row * pitch;
      __stcg(w + column, x);
      __stcg(w + column + 1, y);
      if (column == 0) {
        __stcg(w + D, top);
        __stcg(w + D + 1, total);
      }
    }
    if (splits == 1) return;

    __threadfence();
    __syncthreads();
    int* last = reinterpret_cast<int*>(attention_shared);
    if (threadIdx.x == 0) *last = atomicAdd(counters + pair, 1) == splits - 1;
    __syncthreads();
    if (!*last) return;
    __threadfence();
    if (threadIdx.x == 0) counters[pair] = 0;
    const float* all = partial + pair * splits * group * pitch;
    for (int i = threadIdx.x * 2; i < group * D; i += 2 * threads) {
      const int row = i / D, column = i % D;
      float x, y, top, total;
      merge<true>(all + row * pitch, group * pitch, splits, column, x, y, top, total);
      write(out + i, x, y, total);
    }
  }

  template <bool WORKSPACE>
  static __device__ __forceinline__ float read(const float* p) {
    if constexpr (WORKSPACE) return __ldcg(p);
    return *p;
  }

  // merge adds up columns column and column+1 of count partial sums, in shared
  // memory or, past the first-level cache, in the workspace.
  template <bool WORKSPACE>
  static __device__ __forceinline__ void merge(const float* sums, int step, int count, int column, float& x, float& y,
                                               float& top, float& total) {
    top = negativeInfinity();
#pragma unroll 4
    for (int i = 0; i < count; i++) top = fmaxf(top, read<WORKSPACE>(sums + i * step + D));
    x = y = total = 0;
#pragma unroll 4
    for (int i = 0; i < count; i++) {
      const float* w = sums + i * step;
      const float m = read<WORKSPACE>(w + D), factor = m == negativeInfinity() ? 0 : exp2(m - top);
      x += factor * read<WORKSPACE>(w + column);
      y += factor * read<WORKSPACE>(w + column + 1);
      total += factor * read<WORKSPACE>(w + D + 1);
    }
  }

  static __device__ __forceinline__ void write(element* to, float x, float y, float total) {
    const float inverse = total > 0 ? 1 / total : 0;
    *reinterpret_cast<unsigned*>(to) = T::pack(x * inverse, y * inverse);
  }
};

template <int D>
__device__ constexpr bool decodeShape(int threads, int shared) {
  return generation<bf16, D>::threads == threads && generation<bf16, D>::shared == shared &&
         generation<bf16, D>::warps * 16 * generation<bf16, D>::pitch * 4 <= shared;
}

static_assert(decodeShape<64>(128, 98304), "");
static_assert(decodeShape<80>(128, 90112), "");
static_assert(decodeShape<96>(128, 79872), "");
static_assert(decodeShape<128>(128, 98304), "");
static_assert(decodeShape<256>(64, 98304), "");

} // namespace attention

// attention_prefill_<type>_<head size>: causal attention over packed sequences.
//
// Sequence s has rows starts[s] .. starts[s+1]-1 of qkv and of out. Query head h
// starts at column h/(queries/kv)*qGroupStep + h%(queries/kv)*D of a row of qkv,
// the key of key/value head g at keyBase + g*keyStep, its value at valueBase +
// g*valueStep. Head h of out starts at column h*D. A query sees the last window
// keys, its own the last.
//
// Launch: grid (ceil(longest sequence / tile), queries, sequences), and
//
//            | sm_90a                         | other targets
//   D        | tile  threads  dynamic shared  | tile  threads  dynamic shared
//   64       | 192   512       90176 bytes    | 128   128       49152 bytes
//   80       | 128   128       67584          | 128   128       67584
//   96       | 128   128       79872          | 128   128       79872
//   128      | 128   384      163904          | 128   128       98304
//   256      | 128   384      196672          |  64   128       98304
#define ATTENTION_PREFILL(T, D)                                                                                        \
  extern "C" __global__ void __launch_bounds__(attention::shape<D>::threads, 1) attention_prefill_##T##_##D(           \
      const unsigned short* qkv, unsigned short* out, const int* starts, int stride, int outStride, int queries, int kv, \
      int qGroupStep, int keyBase, int keyStep, int valueBase, int valueStep, float scale, float cap, int window) {    \
    typedef attention::shape<D> shape;                                                                                 \
    const attention::job j =                                                                                           \
        attention::jobOf<shape::queries, shape::keys, D>(qkv, out, starts, stride, outStride, queries, kv, qGroupStep, \
                                                         keyBase, keyStep, valueBase, valueStep, window);              \
    if (!j.empty) shape::run<attention::T>(j, stride, outStride, scale, cap, window);                                  \
  }

// attention_decode_<type>_<head size>: one query token per sequence against a
// cache of keys[sequence][kv head][capacity][D], and values likewise.
//
// Row s of qkv and of out belongs to sequence s; the columns are those of
// prefill. lengths[s] counts the sequence's keys, the present token's included,
// and is read on the device. At most 16 query heads may share a key/value head.
//
// Launch: grid (splits, kv, sequences), and
//
//   D        | threads  dynamic shared
//   64       | 128      98304 bytes
//   80       | 128      90112
//   96       | 128      79872
//   128      | 128      98304
//   256      |  64      98304
//
// splits divides each sequence's keys among blocks; the block that ends last adds
// up the parts. partial has sequences*queries*splits*(D+2) floats, and counters
// sequences*kv integers that are zero before the first launch; each launch leaves
// them zero. Launches that may overlap need their own. With one split both may be
// null. On an H200 these were best: for fewer pairs (sequence, kv head) than
// multiprocessors, multiprocessors/pairs splits, but none below 256 keys;
// otherwise one split.
#define ATTENTION_DECODE(T, D)                                                                                        \
  extern "C" __global__ void __launch_bounds__(attention::generation<attention::T, D>::threads)                       \
      attention_decode_##T##_##D(const unsigned short* qkv, const unsigned short* keys, const unsigned short* values, \
                                 const int* lengths, unsigned short* out, float* partial, int* counters, int stride,  \
                                 int outStride, int queries, int kv, int qGroupStep, int capacity, float scale,       \
                                 float cap, int window, int splits) {                                                 \
    attention::generation<attention::T, D>::run(qkv, keys, values, lengths, out, partial, counters, stride, outStride, \
                                                queries, kv, qGroupStep, capacity, scale, cap, window, splits);       \
  }

#define ATTENTION_KERNELS(T, D) \
  ATTENTION_PREFILL(T, D)       \
  ATTENTION_DECODE(T, D)

#ifdef ATTENTION_HEAD
ATTENTION_KERNELS(ATTENTION_TYPE, ATTENTION_HEAD)
#else
ATTENTION_KERNELS(bf16, 64)
ATTENTION_KERNELS(bf16, 80)
ATTENTION_KERNELS(bf16, 96)
ATTENTION_KERNELS(bf16, 128)
ATTENTION_KERNELS(bf16, 256)
ATTENTION_KERNELS(f16, 64)
ATTENTION_KERNELS(f16, 80)
ATTENTION_KERNELS(f16, 96)
ATTENTION_KERNELS(f16, 128)
ATTENTION_KERNELS(f16, 256)
#endif
