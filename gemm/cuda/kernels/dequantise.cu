// Products of activations with weights of four-bit codes: y[M,N] = x[M,K]·w[N,K]ᵀ, with w = scale·(code − zero) rounded to
// bfloat16 in registers, before the matrix instructions. Sums are float32. The kernels need compute capability 9.0.
// The source text is ptx.cu, this file, which dequantises, and a file with a kernel: dequantisefew.cu, dequantisestationary.cu
// or dequantisestreaming.cu.
//
// Macros choose the format: FP4 (codes are E2M1, otherwise unsigned integers), ZEROS (a zero point for every group,
// otherwise 8), GROUP (inputs of a group: 16, 32 or a multiple of 64), SCALE (0: bfloat16, 1: E4M3, 2: E8M0, 3: E4M3
// without subnormal numbers).
//
// Codes lie in units of 16 outputs × 64 inputs, 16 bytes for each lane of a warp: a word for every 16 inputs, with
// the lane's elements of the left operand of m16n8k16 (see pack.go). A strip of 16 outputs has K/64 units in a row. Its scales
// and zero points lie in the same order. Those of outputs i and i+8 lie side by side, and those of a unit's groups.
//
// In the matrix instructions FP4 values are smaller by a factor of 2^8. The factor of the results compensates for it.

typedef unsigned short bf16;

namespace dequantise {

using namespace ptx;

constexpr int perUnit = GROUP < 64 ? 64 / GROUP : 1; // groups in a unit

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

  // blocks is the number of sets of groups in a strip.
  static __device__ __forceinline__ int blocks(int k) { return GROUP < 64 ? k / 64 : (GROUP < k ? k / GROUP : 1); }

  __device__ __forceinline__ weights(const unsigned* c, const unsigned char* s, const unsigned char* z, int strip, int k, int lane) {
    codes = c + static_cast<long long>(strip) * (k / 64) * 128 + lane * 4;
    const long long at = static_cast<long long>(strip) * blocks(k) * unitGroups + lane / 4 * laneGroups;
    scales = s + at * scaleSize;
    zeros = z + at;
  }

  // below are the weights of another strip further down.
  __device__ __forceinline__ weights below(int strips, int k) const {
    weights w = *this;
    w.codes += strips * (k / 64) * 128;
    const int at = strips * blocks(k) * unitGroups;
    w.scales += at * scaleSize;
    w.zeros += at;
    return w;
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

__device__ __forceinline__ unsigned pack2(float low, float high) {
  unsigned r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
}

} // namespace dequantise
