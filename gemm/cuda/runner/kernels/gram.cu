// Calibration statistics: Gram matrices of the inputs of linear layers, which are float.

// gram_add: sum += x of square matrices, in the upper triangle.
extern "C" __global__ void gram_add(double *sum, const float *x, int width) {
	for (int row = blockIdx.x; row < width; row += gridDim.x)
		for (int col = row + threadIdx.x; col < width; col += blockDim.x) {
			wide at = (wide)row * width + col;
			sum[at] += (double)x[at];
		}
}

// gram_pack: y = sum / tokens, the upper triangle row by row without gaps.
extern "C" __global__ void gram_pack(float *y, const double *sum, int width, double tokens) {
	for (int row = blockIdx.x; row < width; row += gridDim.x) {
		wide to = (wide)row * width - (wide)row * (row - 1) / 2 - row;
		for (int col = row + threadIdx.x; col < width; col += blockDim.x)
			y[to + col] = (float)(sum[(wide)row * width + col] / tokens);
	}
}

// ordered maps floats to integers of the same order. NaN is below or above all.
__device__ __forceinline__ bits32 ordered(float x) {
	bits32 u = __float_as_uint(x);
	return u & 0x80000000u ? ~u : u | 0x80000000u;
}

// gram_range: range[0] and range[1] become the maxima of themselves and of ~ordered(x) and ordered(x).
extern "C" __global__ void gram_range(bits32 *range, const float *x, int rows, int width) {
	wide n = (wide)rows * width;
	bits32 low = 0, high = 0;
	for (wide i = (wide)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (wide)gridDim.x * blockDim.x) {
		bits32 u = ordered(x[i]);
		low = max(low, ~u);
		high = max(high, u);
	}
	for (int d = 16; d > 0; d /= 2) {
		low = max(low, __shfl_xor_sync(0xffffffffu, low, d));
		high = max(high, __shfl_xor_sync(0xffffffffu, high, d));
	}
	if (threadIdx.x % 32 == 0) {
		atomicMax(range, low);
		atomicMax(range + 1, high);
	}
}
