// Elements: bf16 and f16 by their bits, and their conversion to float. Every other file needs this one first.

#undef INFINITY
#define INFINITY __int_as_float(0x7f800000)

typedef unsigned short bits16;
typedef unsigned int bits32;
typedef long long wide;

struct bf16 { bits16 bits; };
struct f16 { bits16 bits; };

// eight elements are read and written at once. Their address is a multiple of 16.
template <typename T> struct alignas(16) eight { T v[8]; };

__device__ __forceinline__ float load(float x) { return x; }
__device__ __forceinline__ float load(bf16 x) { return __uint_as_float((bits32)x.bits << 16); }
__device__ __forceinline__ float load(f16 x) {
	float y;
	asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
	return y;
}

__device__ __forceinline__ void store(float &to, float x) { to = x; }
__device__ __forceinline__ void store(bf16 &to, float x) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x)); }
__device__ __forceinline__ void store(f16 &to, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x)); }

// rounded is x as an element of type T holds it.
template <typename T> __device__ __forceinline__ float rounded(float x) {
	T t;
	store(t, x);
	return load(t);
}

// Sums and maxima over all threads of a block, at most 1024; every thread gets the result.
template <typename T> __device__ __forceinline__ T block_sum(T x) {
	__shared__ T part[32];
	for (int d = 16; d > 0; d /= 2) x += __shfl_xor_sync(0xffffffffu, x, d);
	__syncthreads();
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
	__syncthreads();
	T sum = 0;
	for (int i = 0; i < (blockDim.x + 31) / 32; i++) sum += part[i];
	return sum;
}

__device__ __forceinline__ float block_max(float x) {
	__shared__ float part[32];
	for (int d = 16; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
	__syncthreads();
	if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
	__syncthreads();
	float top = part[0];
	for (int i = 1; i < (blockDim.x + 31) / 32; i++) top = fmaxf(top, part[i]);
	return top;
}

// FOR_TYPES defines an entry point for each type of activations.
#define FOR_TYPES(DEFINE) DEFINE(bf16, bf16) DEFINE(fp16, f16) DEFINE(fp32, float)
