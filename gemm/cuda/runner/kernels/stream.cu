// The residual stream: embeddings, norms, sums. One block per row.

// embed: h[row] = scale·table[tokens[row]] + positions[places[row] + offset]. positions may be null.
template <typename T>
__device__ void embed(T *h, const T *table, const T *positions, const int *tokens, const int *places, int width, float scale, int offset) {
	wide row = blockIdx.x;
	const T *from = table + (wide)tokens[row] * width;
	const T *add = positions ? positions + (wide)(places[row] + offset) * width : nullptr;
	for (int i = threadIdx.x; i < width; i += blockDim.x) {
		float v = scale * load(from[i]);
		if (add) v += load(add[i]);
		store(h[row * width + i], v);
	}
}

// normalize: y = (add ? y : 0) + scale·norm(x), in the columns of each span: from spans[blockIdx.y] on, or from 0
// if spans is null. y and x may be the same. layer: LayerNorm instead of RMSNorm. weight and bias may be null.
template <typename T>
__device__ void normalize(T *y, const T *x, const float *weight, const float *bias, const int *spans, int width, int strideY, int strideX,
		float epsilon, int layer, int add, float scale) {
	wide row = blockIdx.x;
	int from = spans ? spans[blockIdx.y] : 0;
	x += row * strideX + from;
	y += row * strideY + from;
	float mean = 0;
	if (layer) {
		for (int i = threadIdx.x; i < width; i += blockDim.x) mean += load(x[i]);
		mean = block_sum(mean) / width;
	}
	float squares = 0;
	for (int i = threadIdx.x; i < width; i += blockDim.x) {
		float d = load(x[i]) - mean;
		squares += d * d;
	}
	float inverse = 1 / sqrtf(block_sum(squares) / width + epsilon);
	for (int i = threadIdx.x; i < width; i += blockDim.x) {
		float v = (load(x[i]) - mean) * inverse;
		if (weight) v *= weight[i];
		if (bias) v += bias[i];
		v *= scale;
		if (add) v += load(y[i]);
		store(y[i], v);
	}
}

// normalize_wide is normalize for widths, strides and spans that are multiples of 8 elements, at most 32 of a thread: it
// reads each element once.
template <typename T>
__device__ void normalize_wide(T *y, const T *x, const float *weight, const float *bias, const int *spans, int width, int strideY, int strideX,
		float epsilon, int layer, int add, float scale) {
	wide row = blockIdx.x;
	int from = spans ? spans[blockIdx.y] : 0, step = 8 * blockDim.x, first = 8 * threadIdx.x;
	x += row * strideX + from;
	y += row * strideY + from;
	float v[4][8], mean = 0, squares = 0;
#pragma unroll
	for (int g = 0; g < 4; g++) {
		if (first + g * step >= width) break;
		eight<T> e = *(const eight<T> *)(x + first + g * step);
#pragma unroll
		for (int i = 0; i < 8; i++) {
			v[g][i] = load(e.v[i]);
			mean += v[g][i];
		}
	}
	mean = layer ? block_sum(mean) / width : 0;
#pragma unroll
	for (int g = 0; g < 4; g++) {
		if (first + g * step >= width) break;
#pragma unroll
		for (int i = 0; i < 8; i++) squares += (v[g][i] - mean) * (v[g][i] - mean);
	}
	float inverse = 1 / sqrtf(block_sum(squares) / width + epsilon);
#pragma unroll
	for (int g = 0; g < 4; g++) {
		int at = first + g * step;
		if (at >= width) break;
		eight<T> e;
		if (add) e = *(const eight<T> *)(y + at);
#pragma unroll
		for (int i = 0; i < 8; i++) {
			float u = (v[g][i] - mean) * inverse;
			if (weight) u *= weight[at + i];
			if (bias) u += bias[at + i];
			u *= scale;
			if (add) u += load(e.v[i]);
			store(e.v[i], u);
		}
		*(eight<T> *)(y + at) = e;
	}
}

// add_rows: y += scale·x.
template <typename T> __device__ void add_rows(T *y, const T *x, wide n, float scale) {
	for (wide i = (wide)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (wide)gridDim.x * blockDim.x)
		store(y[i], load(y[i]) + scale * load(x[i]));
}

// add_bias: every row of y += bias.
template <typename T> __device__ void add_bias(T *y, const float *bias, int width, int stride) {
	wide row = blockIdx.x;
	for (int i = threadIdx.x; i < width; i += blockDim.x) store(y[row * stride + i], load(y[row * stride + i]) + bias[i]);
}

// act computes an activation function, numbered as in decoder.Activation.
__device__ __forceinline__ float act(float v, int activation) {
	float u;
	switch (activation) {
	case 1: return v / (1 + expf(-v));
	case 2: return v * normcdff(v);
	case 3: u = 1.5957691216057308f * (v + 0.044715f * v * v * v); return v / (1 + expf(-u));
	default: return fmaxf(v, 0.0f);
	}
}

// activate: z = act(gate)·up of y = gate | up, or act(y) if gated is 0. Blocks: rows, and parts of a row.
template <typename T> __device__ void activate(T *z, const T *y, int neurons, int gated, int activation) {
	wide row = blockIdx.x;
	const T *gate = y + row * neurons * (gated ? 2 : 1), *up = gate + neurons;
	z += row * neurons;
	int first = blockIdx.y * blockDim.x + threadIdx.x, step = gridDim.y * blockDim.x;
	if (neurons % 8) {
		for (int i = first; i < neurons; i += step) store(z[i], act(load(gate[i]), activation) * (gated ? load(up[i]) : 1));
		return;
	}
	for (int i = 8 * first; i < neurons; i += 8 * step) {
		eight<T> a = *(const eight<T> *)(gate + i), b, to;
		if (gated) b = *(const eight<T> *)(up + i);
#pragma unroll
		for (int j = 0; j < 8; j++) store(to.v[j], act(load(a.v[j]), activation) * (gated ? load(b.v[j]) : 1));
		*(eight<T> *)(z + i) = to;
	}
}

// check: sets the flag if a value is NaN or infinite.
template <typename T> __device__ void check(const T *x, wide n, int *flag) {
	int bad = 0;
	for (wide i = (wide)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (wide)gridDim.x * blockDim.x) {
		float v = load(x[i]);
		bad |= !(v - v == 0);
	}
	if (__syncthreads_or(bad) && threadIdx.x == 0) *flag = 1;
}

#define DEFINE_STREAM(name, T) \
	extern "C" __global__ void embed_##name(T *h, const T *table, const T *positions, const int *tokens, const int *places, int width, \
			float scale, int offset) { embed<T>(h, table, positions, tokens, places, width, scale, offset); } \
	extern "C" __global__ void normalize_##name(T *y, const T *x, const float *weight, const float *bias, const int *spans, int width, \
			int strideY, int strideX, float epsilon, int layer, int add, float scale) { \
		normalize<T>(y, x, weight, bias, spans, width, strideY, strideX, epsilon, layer, add, scale); } \
	extern "C" __global__ void __launch_bounds__(1024) normalize_wide_##name(T *y, const T *x, const float *weight, const float *bias, \
			const int *spans, int width, int strideY, int strideX, float epsilon, int layer, int add, float scale) { \
		normalize_wide<T>(y, x, weight, bias, spans, width, strideY, strideX, epsilon, layer, add, scale); } \
	extern "C" __global__ void add_rows_##name(T *y, const T *x, int rows, int width, float scale) { add_rows<T>(y, x, (wide)rows * width, scale); } \
	extern "C" __global__ void add_bias_##name(T *y, const float *bias, int width, int stride) { add_bias<T>(y, bias, width, stride); } \
	extern "C" __global__ void activate_##name(T *z, const T *y, int neurons, int gated, int activation) { activate<T>(z, y, neurons, gated, activation); } \
	extern "C" __global__ void check_##name(const T *x, int rows, int width, int *flag) { check<T>(x, (wide)rows * width, flag); }
FOR_TYPES(DEFINE_STREAM)

// split: x = a + b + c in bf16, exact to 24 bits, so that a product with float activations and bf16 weights is
// three products of tensor cores.
extern "C" __global__ void split_bf16(bf16 *a, bf16 *b, bf16 *c, const float *x, int rows, int width, int stride) {
	wide n = (wide)rows * width;
	for (wide i = (wide)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (wide)gridDim.x * blockDim.x) {
		float v = x[i / width * stride + i % width];
		store(a[i], v);
		v -= load(a[i]);
		store(b[i], v);
		store(c[i], v - load(b[i]));
	}
}
