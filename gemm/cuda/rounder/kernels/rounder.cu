// Rounding of a layer's values with feedback, in the bits of package transform/rounding. Every sum has the order of
// the CPU's. Intrinsics keep the compiler from fusing what the CPU does not fuse.

typedef unsigned short bits16;
typedef unsigned int bits32;
typedef unsigned long long bits64;
typedef long long wide;

#define SIGN 0x80000000u
#define EXPONENT 0x7F800000u
#define BINADE 0x00800000u

// product: c += aᵀ·b of a[depth, m], b[depth, n] and c[m, n], or c = aᵀ·b if fresh. An element is one chain of fused
// multiply-adds over ascending depth, a multiple of 8. With upper, tiles below the diagonal are left out. a and b may be
// read up to the next multiple of 128 columns.
extern "C" __global__ void __launch_bounds__(256, 2) product(float *c, int ldc, const float *a, int lda, const float *b, int ldb,
		int m, int n, int depth, int fresh, int upper) {
	__shared__ __align__(16) float as[2][8][128];
	__shared__ __align__(16) float bs[2][8][128];
	int m0 = blockIdx.y * 128, n0 = blockIdx.x * 128;
	if (upper && n0 + 128 <= m0) return;
	int tm = threadIdx.x / 16 * 4, tn = threadIdx.x % 16 * 4; // rows tm to tm+3 and tm+64 to tm+67, columns alike
	float sum[8][8];
#pragma unroll
	for (int i = 0; i < 8; i++) {
		int row = m0 + tm + i % 4 + i / 4 * 64;
#pragma unroll
		for (int j = 0; j < 8; j++) {
			int col = n0 + tn + j % 4 + j / 4 * 64;
			sum[i][j] = fresh || row >= m || col >= n ? 0.0f : c[(wide)row * ldc + col];
		}
	}
	int k = threadIdx.x / 32, at = threadIdx.x % 32 * 4;
	const float *pa = a + (wide)k * lda + m0 + at, *pb = b + (wide)k * ldb + n0 + at;
	*(float4 *)&as[0][k][at] = *(const float4 *)pa;
	*(float4 *)&bs[0][k][at] = *(const float4 *)pb;
	__syncthreads();
	for (int step = 0; step < depth; step += 8) {
		int now = step / 8 % 2;
		float4 na, nb;
		bool more = step + 8 < depth;
		if (more) {
			pa += (wide)8 * lda;
			pb += (wide)8 * ldb;
			na = *(const float4 *)pa;
			nb = *(const float4 *)pb;
		}
#pragma unroll
		for (int k = 0; k < 8; k++) {
			float x[8], y[8];
			*(float4 *)x = *(float4 *)&as[now][k][tm];
			*(float4 *)(x + 4) = *(float4 *)&as[now][k][tm + 64];
			*(float4 *)y = *(float4 *)&bs[now][k][tn];
			*(float4 *)(y + 4) = *(float4 *)&bs[now][k][tn + 64];
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 8; j++) sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
		}
		if (more) {
			*(float4 *)&as[1 - now][k][at] = na;
			*(float4 *)&bs[1 - now][k][at] = nb;
		}
		__syncthreads();
	}
#pragma unroll
	for (int i = 0; i < 8; i++) {
		int row = m0 + tm + i % 4 + i / 4 * 64;
		if (row >= m) continue;
#pragma unroll
		for (int j = 0; j < 8; j += 4) {
			int col = n0 + tn + j / 4 * 64;
			float *to = c + (wide)row * ldc + col;
			if (col + 3 < n) {
				*(float4 *)to = *(float4 *)&sum[i][j];
			} else {
				for (int e = 0; e < 4; e++)
					if (col + e < n) to[e] = sum[i][j + e];
			}
		}
	}
}

// packed is the place of element (i, j) of a symmetric matrix in its upper triangle, row by row without gaps.
__device__ __forceinline__ wide packed(int i, int j, int width) {
	int low = min(i, j), high = max(i, j);
	return (wide)low * width - (wide)low * (low - 1) / 2 + high - low;
}

// unpack: a[i, j] = h[order[i], order[j]] of a symmetric matrix given as its upper triangle, and zeros in the padding of
// a[ld, ld]. d has the diagonal in order; may be null.
extern "C" __global__ void unpack(float *a, double *d, const float *h, const int *order, int width, int ld) {
	int row = blockIdx.x;
	int from = row < width ? order[row] : 0;
	for (int col = blockIdx.y * blockDim.x + threadIdx.x; col < ld; col += gridDim.y * blockDim.x) {
		float v = row < width && col < width ? h[packed(from, order[col], width)] : 0.0f;
		a[(wide)row * ld + col] = v;
		if (d && row == col && row < width) d[row] = (double)v;
	}
}

#define PANEL 64

// corner factorises the block of cols columns on the diagonal from p0 on, from its last row to its first, with 64
// threads. u[64, 64] becomes the corner of U in float64 and d the pivots. failed[0] becomes 1 where the matrix is not
// positive semidefinite, failed[1] the pivot.
extern "C" __global__ void __launch_bounds__(PANEL) corner(float *a, int ld, double *d, double *u, int p0, int cols, double damp,
		double noise, double indefinite, double *failed) {
	__shared__ double s[PANEL][PANEL + 1]; // row r: the row of the matrix, then of U
	__shared__ double pivot[PANEL], part[PANEL];
	int t = threadIdx.x;
	float *block = a + (wide)p0 * ld + p0;
	for (int r = 0; r < cols; r++)
		if (t < cols) s[r][t] = (double)block[(wide)r * ld + t];
	if (t < cols) pivot[t] = d[p0 + t];
	__syncthreads();
	for (int k = cols - 1; k >= 0; k--) {
		if (t > k && t < cols) { // row k is complete
			double y = s[k][t], v = __ddiv_rn(y, pivot[t]);
			part[t] = __dmul_rn(v, y);
			s[k][t] = v;
		}
		__syncthreads();
		if (t == k) {
			double p = __dadd_rn(s[k][k], damp);
			for (int m = k + 1; m < cols; m++) p = __dsub_rn(p, part[m]);
			double own = pivot[k];
			if (p < __dmul_rn(-indefinite, own) && failed[0] == 0) {
				failed[0] = 1;
				failed[1] = p;
			}
			pivot[k] = max(max(p, damp), __dmul_rn(noise, own));
		}
		if (t < k) { // column k of the rows above
			double s0 = 0, s1 = 0;
			int m = k + 1;
			for (; m + 1 < cols; m += 2) {
				s0 = __dadd_rn(s0, __dmul_rn(s[k][m], s[t][m]));
				s1 = __dadd_rn(s1, __dmul_rn(s[k][m + 1], s[t][m + 1]));
			}
			if (m < cols) s0 = __dadd_rn(s0, __dmul_rn(s[k][m], s[t][m]));
			s[t][k] = __dsub_rn(s[t][k], __dadd_rn(s0, s1));
		}
		__syncthreads();
	}
	for (int r = 0; r < cols; r++)
		if (t > r && t < cols) {
			u[r * PANEL + t] = s[r][t];
			block[(wide)r * ld + t] = __double2float_rn(s[r][t]);
		}
	if (t < cols) d[p0 + t] = pivot[t];
}

// solve computes the rows of U above a corner, in the 64 columns from p0 on, a thread for each row. ut[64, ldt] gets
// them transposed, yt[64, ldt] −U·D.
extern "C" __global__ void __launch_bounds__(PANEL) solve(float *a, int ld, const double *d, const double *u, float *ut, float *yt,
		int ldt, int p0) {
	__shared__ double corner[PANEL][PANEL];
	__shared__ double pivot[PANEL];
	int t = threadIdx.x;
	for (int r = 0; r < PANEL; r++) corner[r][t] = u[r * PANEL + t];
	pivot[t] = d[p0 + t];
	__syncthreads();
	int row = blockIdx.x * PANEL + t;
	if (row >= p0) return;
	float *own = a + (wide)row * ld + p0;
	double y[PANEL];
#pragma unroll
	for (int k = 0; k < PANEL; k++) y[k] = (double)own[k];
#pragma unroll
	for (int k = PANEL - 2; k >= 0; k--) {
		double s0 = 0, s1 = 0;
#pragma unroll
		for (int m = k + 1; m < PANEL; m++) {
			double p = __dmul_rn(corner[k][m], y[m]);
			if ((m - k) % 2) s0 = __dadd_rn(s0, p);
			else s1 = __dadd_rn(s1, p);
		}
		y[k] = __dsub_rn(y[k], __dadd_rn(s0, s1));
	}
#pragma unroll
	for (int k = 0; k < PANEL; k++) {
		float v = __double2float_rn(__ddiv_rn(y[k], pivot[k]));
		own[k] = v;
		ut[(wide)k * ldt + row] = v;
		yt[(wide)k * ldt + row] = __double2float_rn(-y[k]);
	}
}

// gains: the factor of each column's distances before they are squared.
extern "C" __global__ void gains(float *g, const double *d, double scale, int columns) {
	int k = blockIdx.x * blockDim.x + threadIdx.x;
	if (k < columns) g[k] = __double2float_rn(min(__dsqrt_rn(__dmul_rn(scale, max(d[k], 0.0))), 3.4028234663852886e38));
}

// element of a matrix of bf16 or float.
__device__ __forceinline__ float element(const void *w, wide i, int narrow) {
	return narrow ? __uint_as_float((bits32)((const bits16 *)w)[i] << 16) : ((const float *)w)[i];
}

// gather: values and errors [width, ld] become the transpose of w[rows, width], with the columns in order, copies times
// side by side. order and errors may be null. With q, a second matrix for each copy, values are w − q instead, and 0
// where w is not finite.
extern "C" __global__ void gather(float *values, float *errors, int ld, const void *w, const void *q, const int *order, int rows,
		int width, int copies, int narrow) {
	__shared__ float tile[32][33];
	int x = threadIdx.x % 32, y = threadIdx.x / 32;
	int col0 = blockIdx.x * 32, row0 = blockIdx.y * 32;
	int copy = blockIdx.z;
	for (int i = y; i < 32; i += 8) {
		int row = row0 + i, col = col0 + x;
		if (row >= rows || col >= width) continue;
		int from = order ? order[col] : col;
		float v = element(w, (wide)row * width + from, narrow);
		if (q) {
			bool finite = (__float_as_uint(v) & EXPONENT) != EXPONENT;
			v = finite ? __fsub_rn(v, element(q, ((wide)copy * rows + row) * width + from, narrow)) : 0.0f;
		} else if (!errors) {
			if ((__float_as_uint(v) & EXPONENT) == EXPONENT) v = 0.0f;
		}
		tile[i][x] = v;
	}
	__syncthreads();
	for (int i = y; i < 32; i += 8) {
		int row = row0 + x, col = col0 + i;
		if (row >= rows || col >= width) continue;
		wide at = (wide)col * ld + (wide)copy * rows + row;
		float v = tile[x][i];
		values[at] = v;
		if (errors) errors[at] = v;
	}
}

// scatter: q[copies·rows, width] become the transposed values, with the columns back in their places.
extern "C" __global__ void scatter(void *q, const float *values, int ld, const int *order, int rows, int width, int narrow) {
	__shared__ float tile[32][33];
	int x = threadIdx.x % 32, y = threadIdx.x / 32;
	int col0 = blockIdx.x * 32, row0 = blockIdx.y * 32;
	for (int i = y; i < 32; i += 8)
		if (row0 + x < rows && col0 + i < width) tile[i][x] = values[(wide)(col0 + i) * ld + row0 + x];
	__syncthreads();
	for (int i = y; i < 32; i += 8) {
		int row = row0 + i, col = col0 + x;
		if (row >= rows || col >= width) continue;
		wide at = (wide)row * width + order[col];
		float v = tile[x][i];
		if (narrow) ((bits16 *)q)[at] = (bits16)(__float_as_uint(v) >> 16);
		else ((float *)q)[at] = v;
	}
}

// format describes a format's values, as the lattice of package rounding does.
struct format {
	int mant, floor;
	float top, bottom;
	bits32 sign, from, to;
	int bits;
};

__device__ __forceinline__ float clamped(const format &f, float t) { return min(max(t, f.bottom), f.top); }

__device__ __forceinline__ int spacing(const format &f, float t) {
	int e = (int)(__float_as_uint(t) >> 23 & 0xFF) - 127;
	return max(e - f.mant, f.floor);
}

// nearest multiple of 2^m to t, ties to even; out of range it is the last one in range.
__device__ __forceinline__ float multiple(const format &f, float t, int m) {
	double c = __longlong_as_double((wide)(((bits64)(1023 + 52 + m) << 52) | 1ull << 51));
	float r = __double2float_rn(__dsub_rn(__dadd_rn((double)t, c), c));
	if (r <= f.top && r >= f.bottom) return r;
	float limit = t < 0 ? f.bottom : f.top;
	return __fadd_rn(__double2float_rn(ldexp(trunc(ldexp((double)limit, -m)), m)), 0.0f);
}

// best is the cheapest candidate for a magnitude so far; of equal costs the one of smaller magnitude.
struct best {
	float cost;
	bits32 value;
	__device__ __forceinline__ void consider(float x, bits32 v, float gain, float price) {
		float d = __fmul_rn(__fsub_rn(x, __uint_as_float(v)), gain);
		float c = __fadd_rn(__fmul_rn(d, d), price);
		if (c < cost || c == cost && v < value) {
			cost = c;
			value = v;
		}
	}
};

// edge considers the candidates of targets that are subnormal, near zero, at the ends of the range, or of integers.
__device__ __noinline__ bits32 edge(const format &f, float t, float gain, const float *prices, int stride) {
	float x = max(t, -t);
	best b = {__fadd_rn(__fmul_rn(__fmul_rn(x, gain), __fmul_rn(x, gain)), prices[0]), 0};
	t = clamped(f, t);
	if (t == 0) return b.value;
	const bits64 one = 1ull << 52;
	bits64 bits = (bits64)__double_as_longlong((double)t), low = bits & ~(one - 1);
	int e = (int)(low >> 52 & 0x7FF) - 1023;
	auto put = [&](int significant, bits64 v) {
		float y = __double2float_rn(__longlong_as_double((wide)v));
		bits32 s = __float_as_uint(y);
		if (y <= f.top && y >= f.bottom && s != 0) b.consider(x, s & ~SIGN, gain, prices[significant * stride]);
	};
	if (e < f.floor) {
		double least = ldexp(1.0, f.floor);
		put(1, (bits64)__double_as_longlong(t < 0 ? -least : least));
		return b.value;
	}
	put(1, low);
	put(1, low + one);
	int n = min(f.bits, e - f.floor + 1);
	if (n >= 2) put(2, low | one / 2);
	if (bits & one / 2) put(2, (low + one) | one / 2);
	else if (n >= 3) put(2, (low - one) | one / 2);
	if (n >= 3) {
		put(3, low | one / 4);
		put(3, low | one / 2 | one / 4);
	}
	bits64 unit = one / 8;
	for (int i = 4; i <= n; i++) {
		put(i, (bits & ~(2 * unit - 1)) | unit);
		unit >>= 1;
	}
	return b.value;
}

// cheapest is the value that minimises error and energy together.
__device__ __forceinline__ float cheapest(const format &f, float t, float gain, const float *prices, int stride) {
	bits32 bits = __float_as_uint(t), mag = bits & ~SIGN, v;
	if (mag >= f.from && mag < f.to) {
		float x = __uint_as_float(mag);
		bits32 low = mag & ~(BINADE - 1);
		float zero = __fmul_rn(x, gain), one = prices[stride];
		best b = {__fadd_rn(__fmul_rn(zero, zero), prices[0]), 0};
		b.consider(x, low, gain, one);
		b.consider(x, low + BINADE, gain, one);
		bits32 unit = BINADE / 2;
		for (int i = 2; i <= f.bits; i++) {
			b.consider(x, (mag & ~(2 * unit - 1)) | unit, gain, prices[i * stride]);
			unit >>= 1;
		}
		v = b.value;
	} else {
		v = edge(f, t, gain, prices, stride);
	}
	if (v) v |= bits & SIGN;
	return __uint_as_float(v);
}

// Rules for choosing values, as in package rounder.
#define PRICES 0
#define BITS 1
#define GRID 2

#define WIDTH 128 // columns of a block
#define LEAF 16   // columns whose feedback is not fused
#define MOST 26   // prices

// decide rounds columns k0 to k1, at most 128, of 32 rows of each block of threads. Their targets are complete but for the
// columns' feedback on each other. values become the values chosen, errors w − values.
extern "C" __global__ void __launch_bounds__(256) decide(float *values, float *errors, int ld, const float *u, int ldu,
		const float *gain, int k0, int k1, int rows, int zero, int kind, const float *prices, int count, int rowsPerChooser,
		const int *exponents, int zeroed, int mant, int floor, float top, float bottom, int sign, int from, int to, int bits) {
	__shared__ float t[WIDTH][32], w[WIDTH][32];
	__shared__ float price[MOST][32];
	__shared__ float share[WIDTH][LEAF]; // of U, within each leaf
	format f = {mant, floor, top, bottom, (bits32)sign, (bits32)from, (bits32)to, bits};
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, columns = k1 - k0;
	int row = blockIdx.x * 32 + lane;
	bool there = row < rows;
	float *value = values + (wide)k0 * ld + row, *error = errors + (wide)k0 * ld + row;
	for (int c = warp; c < columns; c += 8) {
		t[c][lane] = there ? value[(wide)c * ld] : 0.0f;
		w[c][lane] = there ? error[(wide)c * ld] : 0.0f;
	}
	if (kind == PRICES)
		for (int i = warp; i < count; i += 8) price[i][lane] = prices[(there ? row / rowsPerChooser : 0) * MOST + i];
	int step = kind == GRID && there ? exponents[row] : 0;
	const float *corner = u + (wide)k0 * ldu + k0;
	for (int i = threadIdx.x; i < columns * LEAF; i += 256) {
		int c = i / LEAF;
		share[c][i % LEAF] = corner[(wide)c * ldu + c / LEAF * LEAF + i % LEAF];
	}
	__syncthreads();
	for (int leaf = 0; leaf < columns; leaf += LEAF) {
		int end = min(leaf + LEAF, columns);
		if (warp == 0) {
			for (int c = leaf; c < end; c++) {
				float target = t[c][lane], own = w[c][lane], v, e;
				if ((__float_as_uint(target) & EXPONENT) == EXPONENT) {
					v = own;
					e = 0;
				} else {
					if (k0 + c < zero) {
						v = 0;
					} else if (kind == PRICES) {
						v = cheapest(f, target, gain[k0 + c], &price[0][lane], 32);
					} else if (kind == BITS) {
						float x = clamped(f, target);
						v = multiple(f, x, spacing(f, x) + zeroed);
						v = __uint_as_float(__float_as_uint(v) | (__float_as_uint(x) & f.sign));
					} else {
						float x = clamped(f, target);
						v = multiple(f, x, max(spacing(f, x), min(step, 200)));
					}
					e = __fsub_rn(own, v);
				}
				t[c][lane] = v;
				w[c][lane] = e;
#pragma unroll 5
				for (int next = c + 1; next < end; next++)
					t[next][lane] = __fadd_rn(t[next][lane], __fmul_rn(e, share[c][next - leaf]));
			}
		}
		__syncthreads();
		for (int c = end + 4 * warp; c < columns; c += 32) { // end is a multiple of 16 here
			float t0 = t[c][lane], t1 = t[c + 1][lane], t2 = t[c + 2][lane], t3 = t[c + 3][lane];
#pragma unroll
			for (int j = 0; j < LEAF; j++) {
				float e = w[leaf + j][lane];
				float4 s = *(const float4 *)(corner + (wide)(leaf + j) * ldu + c);
				t0 = __fmaf_rn(s.x, e, t0);
				t1 = __fmaf_rn(s.y, e, t1);
				t2 = __fmaf_rn(s.z, e, t2);
				t3 = __fmaf_rn(s.w, e, t3);
			}
			t[c][lane] = t0;
			t[c + 1][lane] = t1;
			t[c + 2][lane] = t2;
			t[c + 3][lane] = t3;
		}
		__syncthreads();
	}
	for (int c = warp; there && c < columns; c += 8) {
		value[(wide)c * ld] = t[c][lane];
		error[(wide)c * ld] = w[c][lane];
	}
}

// powers: sum[i] = Σ e·eh over the rows from first[i] to before first[i+1] and all columns, row by row, in float64. e is
// given as its transpose et[columns, lde], eh[rows, ldh] is not. One block adds up one chunk: all its threads fetch, and
// the first adds in order.
extern "C" __global__ void __launch_bounds__(128) powers(double *sum, const float *et, int lde, const float *eh, int ldh,
		const int *first, int columns) {
	__shared__ __align__(16) double part[2][1024];
	int i = blockIdx.x, t = threadIdx.x;
	int row = first[i], end = first[i + 1];
	int pieces = (columns + 1023) / 1024;
	int total = (end - row) * pieces;
	double s = 0;
	for (int p = 0; p <= total; p++) {
		if (t >= 32) {
			if (p < total) {
				int r = row + p / pieces, c0 = p % pieces * 1024;
				for (int c = t - 32; c < 1024; c += 96) {
					double v = 0;
					if (c0 + c < columns)
						v = __dmul_rn((double)eh[(wide)r * ldh + c0 + c], (double)et[(wide)(c0 + c) * lde + r]);
					part[p % 2][c] = v;
				}
			}
		} else if (t == 0 && p > 0) {
			const double *from = part[(p - 1) % 2];
			int n = min(1024, columns - (p - 1) % pieces * 1024);
#pragma unroll 8
			for (int c = 0; c < n; c++) s = __dadd_rn(s, from[c]);
		}
		__syncthreads();
	}
	if (t == 0) sum[i] = s;
}
