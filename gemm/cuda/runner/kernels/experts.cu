// Routed experts: the choice of a token's experts, and the rows of an expert's tokens.

// route chooses used experts for each token, the highest score first, the lowest index among equals. One block of one
// warp per token; shared memory: 2·experts floats. correction may be null. With groups > 0, experts come only from the
// groupsUsed groups with the largest sums of their best largest scores.
template <typename T>
__device__ void route(int *chosen, float *weight, const T *logits, const float *correction, int experts, int used, int sigmoid, int normalize,
		float scale, int groups, int groupsUsed, int best) {
	extern __shared__ float memory[];
	float *scores = memory, *rank = memory + experts;
	wide row = blockIdx.x;
	const T *x = logits + row * experts;
	float top = -INFINITY, sum = 0;
	for (int i = threadIdx.x; i < experts; i += 32) top = fmaxf(top, load(x[i]));
	for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
	for (int i = threadIdx.x; i < experts; i += 32) {
		float v = load(x[i]);
		scores[i] = sigmoid ? 1 / (1 + expf(-v)) : expf(v - top);
		sum += scores[i];
	}
	for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
	for (int i = threadIdx.x; i < experts; i += 32) {
		if (!sigmoid) scores[i] /= sum;
		rank[i] = scores[i] + (correction ? correction[i] : 0);
	}
	__syncwarp();
	if (threadIdx.x) return;
	if (groups > 0) {
		float good[64];
		int size = experts / groups;
		for (int g = 0; g < groups; g++) {
			bool taken[256];
			for (int i = 0; i < size; i++) taken[i] = false;
			good[g] = 0;
			for (int n = 0; n < best; n++) {
				int at = -1;
				for (int i = 0; i < size; i++)
					if (!taken[i] && (at < 0 || rank[g * size + i] > rank[g * size + at])) at = i;
				taken[at] = true;
				good[g] += rank[g * size + at];
			}
		}
		bool in[64];
		for (int g = 0; g < groups; g++) in[g] = false;
		for (int n = 0; n < groupsUsed; n++) {
			int at = -1;
			for (int g = 0; g < groups; g++)
				if (!in[g] && (at < 0 || good[g] > good[at])) at = g;
			in[at] = true;
		}
		for (int i = 0; i < experts; i++)
			if (!in[i / size]) rank[i] = -INFINITY;
	}
	float total = 0;
	for (int n = 0; n < used; n++) {
		int at = -1;
		for (int i = 0; i < experts; i++) {
			bool taken = false;
			for (int m = 0; m < n; m++) taken |= chosen[row * used + m] == i;
			if (!taken && (at < 0 || rank[i] > rank[at])) at = i;
		}
		chosen[row * used + n] = at;
		weight[row * used + n] = scores[at];
		total += scores[at];
	}
	if (!normalize) total = 1;
	for (int n = 0; n < used; n++) weight[row * used + n] = weight[row * used + n] / total * scale;
}

// gather: y[i] = x[rows[i]]. scatter: y[rows[i]] += weight[i]·x[i]; a row occurs once. Blocks: rows.
template <typename T> __device__ void gather(T *y, const T *x, const int *rows, int width) {
	wide i = blockIdx.x, from = rows[i];
	for (int c = threadIdx.x; c < width; c += blockDim.x) y[i * width + c] = x[from * width + c];
}
template <typename T> __device__ void scatter(T *y, const T *x, const int *rows, const float *weight, int width) {
	wide i = blockIdx.x, to = rows[i];
	for (int c = threadIdx.x; c < width; c += blockDim.x) store(y[to * width + c], load(y[to * width + c]) + weight[i] * load(x[i * width + c]));
}

#define DEFINE_EXPERTS(name, T) \
	extern "C" __global__ void route_##name(int *chosen, float *weight, const T *logits, const float *correction, int experts, int used, \
			int sigmoid, int normalize, float scale, int groups, int groupsUsed, int best) { \
		route<T>(chosen, weight, logits, correction, experts, used, sigmoid, normalize, scale, groups, groupsUsed, best); } \
	extern "C" __global__ void gather_##name(T *y, const T *x, const int *rows, int width) { gather<T>(y, x, rows, width); } \
	extern "C" __global__ void scatter_##name(T *y, const T *x, const int *rows, const float *weight, int width) { scatter<T>(y, x, rows, weight, width); }
FOR_TYPES(DEFINE_EXPERTS)
