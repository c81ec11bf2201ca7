// The residual stream: embeddings, norms, sums. A block computes a row.

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
	float inverse = (float)(1.0 / sqrt((double)block_sum(squares) / width + (double)epsilon));
	for (int i = threadIdx.x; i < width; i += blockDim.x) {
		float v = (load(x[i]) - mean) * inverse;
		if (weight) v *= weight[i];
		if (bias) v += bias[i];
		v *= scale;
		if (add) v += load(y[i]);
		store(y[i], v);
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

// activate: z = act(gate)·up of y = gate | up, or act(y) if gated is 0.
template <typename T> __device__ void activate(T *z, const T *y, int neurons, int gated, int activation) {
	wide row = blockIdx.x;
	const T *gate = y + row * neurons * (gated ? 2 : 1), *up = gate + neurons;
	for (int i = blockIdx.y * blockDim.x + threadIdx.x; i < neurons; i += gridDim.y * blockDim.x) {
		float v = load(gate[i]), u;
		switch (activation) {
		case 1: v = v / (1 + expf(-v)); break;
		case 2: v = v * normcdff(v); break;
		case 3: u = 1.5957691216057308f * (v + 0.044715f * v * v * v); v = v / (1 + expf(-u)); break;
		case 4: v = fmaxf(v, 0.0f); break;
		}
		if (gated) v *= load(up[i]);
		store(z[row * neurons + i], v);
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
