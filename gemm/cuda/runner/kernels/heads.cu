// Attention heads: rotary positions, the KV cache, and attention of any shape. The fast kernels for common shapes
// are in attention.cu.

// place rotates the queries and keys of each row in place (RoPE), and copies keys and values into the cache
// [sequence][KV head][capacity][channels] unless it is null. Blocks: (rows, query heads + 2·KV heads), one query, key or
// value each. columns has the first column of every query, key and value head. Rotation applies to 2·pairs channels of a
// query or key, from channel first on. turns has cos, then sin of every pair for each position. Rows of sequences longer
// than long_from use long_turns instead, unless it is null.
template <typename T>
__device__ void place(T *y, T *keys, T *values, const int *columns, const int *places, const int *sequences, const int *lengths, const float *turns,
		const float *long_turns, int stride, int queries, int kv, int size, int valueSize, int first, int pairs, int neighbours, int long_from,
		int capacity) {
	wide row = blockIdx.x;
	int part = blockIdx.y, head = part < queries ? -1 : (part - queries) % kv;
	T *x = y + row * stride + columns[part];
	if (part < queries + kv && pairs > 0) {
		const float *table = long_turns && lengths[row] > long_from ? long_turns : turns;
		table += (wide)places[row] * 2 * pairs;
		for (int pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
			int a = first + (neighbours ? 2 * pair : pair), b = neighbours ? a + 1 : a + pairs;
			float u = load(x[a]), v = load(x[b]), c = table[pair], s = table[pairs + pair];
			store(x[a], u * c - v * s);
			store(x[b], v * c + u * s);
		}
	}
	if (head < 0 || !keys) return;
	__syncthreads();
	wide to = ((wide)sequences[row] * kv + head) * capacity + places[row];
	int width = part < queries + kv ? size : valueSize;
	T *cache = (part < queries + kv ? keys : values) + to * width;
	for (int i = threadIdx.x; i < width; i += blockDim.x) cache[i] = x[i];
}

// score returns a score before the softmax. slopes are ALiBi's, or null; coarse rounds the bias to BF16 before scaling.
__device__ __forceinline__ float score(float product, float scale, float cap, const float *slopes, int head, int coarse, int key, int query) {
	if (slopes) {
		float bias, own;
		if (coarse) {
			float slope = rounded<bf16>(slopes[head]);
			bias = scale * rounded<bf16>(slope * rounded<bf16>((float)key));
			own = scale * rounded<bf16>(slope * rounded<bf16>((float)query));
		} else {
			bias = slopes[head] * (float)key;
			own = slopes[head] * (float)query;
		}
		return scale * product + (bias - own);
	}
	if (cap > 0) return cap * tanhf(scale * product / cap);
	return scale * product;
}

// attend is causal attention of any shape in float: a block has 32 queries of one head, with 8 threads for each, and
// keys in tiles of 32. Keys and values are rows of one matrix, or of the cache.
// Dynamic shared memory: (32·(size+1) + 32·(size+1) + 32·valueSize + 32·33) floats.
template <typename T>
__device__ void attend(T *out, int outStride, const T *q, wide qStride, int queries, int firstQuery, const T *k, wide kStride, const T *v, wide vStride,
		int keys, int size, int valueSize, float scale, float cap, int window, const float *slopes, int coarse, int head) {
	extern __shared__ float memory[];
	float *Q = memory, *K = Q + 32 * (size + 1), *V = K + 32 * (size + 1), *S = V + 32 * valueSize;
	int t = threadIdx.x, row = t / 8, lane = t % 8;
	for (int i = t; i < 32 * size; i += 256) {
		int r = i / size, c = i % size;
		Q[r * (size + 1) + c] = r < queries ? load(q[r * qStride + c]) : 0;
	}
	// A query's position in its sequence; threads without a query repeat the last one.
	int place = firstQuery + (row < queries ? row : queries - 1);
	int low = window > 0 && place - window + 1 > 0 ? place - window + 1 : 0;
	int blockLow = window > 0 && firstQuery - window + 1 > 0 ? firstQuery - window + 1 : 0;
	int last = firstQuery + queries; // keys that any query of the block sees
	if (last > keys) last = keys;
	float top = -INFINITY, sum = 0, o[64];
	for (int i = 0; i < 64; i++) o[i] = 0;
	for (int from = blockLow / 32 * 32; from < last; from += 32) {
		__syncthreads();
		int n = last - from < 32 ? last - from : 32;
		for (int i = t; i < n * size; i += 256) K[i / size * (size + 1) + i % size] = load(k[(from + i / size) * kStride + i % size]);
		for (int i = t; i < n * valueSize; i += 256) V[i] = load(v[(from + i / valueSize) * vStride + i % valueSize]);
		__syncthreads();
		float best = top;
		for (int j = lane; j < 32; j += 8) {
			float s = -INFINITY;
			int key = from + j;
			if (j < n && key <= place && key >= low) {
				float dot = 0;
				for (int c = 0; c < size; c++) dot += Q[row * (size + 1) + c] * K[j * (size + 1) + c];
				s = score(dot, scale, cap, slopes, head, coarse, key, place);
			}
			S[row * 33 + j] = s;
			best = fmaxf(best, s);
		}
		for (int d = 4; d > 0; d /= 2) best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, d));
		__syncwarp();
		float shrink = best == -INFINITY ? 1 : expf(top - best); // -INFINITY: no key so far is visible
		top = best;
		sum *= shrink;
		for (int i = 0; i < 64; i++) o[i] *= shrink;
		for (int j = 0; j < n; j++) {
			float s = S[row * 33 + j], p = s == -INFINITY ? 0 : expf(s - top);
			sum += p;
#pragma unroll
			for (int i = 0; i < 64; i++)
				if (lane + 8 * i < valueSize) o[i] += p * V[j * valueSize + lane + 8 * i];
		}
		__syncwarp();
	}
	if (row >= queries) return;
#pragma unroll
	for (int i = 0; i < 64; i++)
		if (lane + 8 * i < valueSize) store(out[(wide)row * outStride + lane + 8 * i], o[i] / sum);
}

// attend_rows: queries, keys and values are columns of y; sequence s has the rows starts[s] to starts[s+1].
// Blocks: (tiles of 32 queries of the longest sequence, query heads, sequences).
template <typename T>
__device__ void attend_rows(T *out, const T *y, const int *starts, const float *slopes, int outStride, int stride, int heads, int kv, int size,
		int valueSize, int queryStep, int keyBase, int keyStep, int valueBase, int valueStep, float scale, float cap, int window, int coarse) {
	int from = starts[blockIdx.z], n = starts[blockIdx.z + 1] - from, first = blockIdx.x * 32;
	if (first >= n) return;
	int head = blockIdx.y, group = heads / kv;
	const T *rows = y + (wide)from * stride;
	int queries = n - first < 32 ? n - first : 32;
	attend<T>(out + (wide)(from + first) * outStride + head * valueSize, outStride,
		rows + (wide)first * stride + head / group * queryStep + head % group * size, stride, queries, first,
		rows + keyBase + head / group * keyStep, stride, rows + valueBase + head / group * valueStep, stride,
		n, size, valueSize, scale, cap, window, slopes, coarse, head);
}

// attend_cache: one query a sequence, the last of lengths[s] keys of the cache. Blocks: (1, query heads, sequences).
template <typename T>
__device__ void attend_cache(T *out, const T *y, const T *keys, const T *values, const int *lengths, const float *slopes, int outStride, int stride,
		int heads, int kv, int size, int valueSize, int queryStep, int capacity, float scale, float cap, int window, int coarse) {
	int sequence = blockIdx.z, n = lengths[sequence], head = blockIdx.y, group = heads / kv;
	wide cache = ((wide)sequence * kv + head / group) * capacity;
	attend<T>(out + (wide)sequence * outStride + head * valueSize, outStride,
		y + (wide)sequence * stride + head / group * queryStep + head % group * size, stride, 1, n - 1,
		keys + cache * size, size, values + cache * valueSize, valueSize, n, size, valueSize, scale, cap, window, slopes, coarse, head);
}

// assemble writes queries, keys and values of latent attention, head by head (query, key, value). A key's last
// channels are shared by all heads. One block per row.
template <typename T>
__device__ void assemble(T *y, const T *queries, const T *kv, const T *shared, int queryStride, int sharedStride, int heads, int size, int own, int valueSize) {
	wide row = blockIdx.x;
	int width = 2 * size + valueSize;
	for (int i = threadIdx.x; i < heads * width; i += blockDim.x) {
		int head = i / width, c = i % width;
		T v;
		if (c < size) v = queries[row * queryStride + head * size + c];
		else if (c < size + own) v = kv[(row * heads + head) * (own + valueSize) + c - size];
		else if (c < 2 * size) v = shared[row * sharedStride + c - size - own];
		else v = kv[(row * heads + head) * (own + valueSize) + own + c - 2 * size];
		y[(row * heads + head) * width + c] = v;
	}
}

#define DEFINE_HEADS(name, T) \
	extern "C" __global__ void place_##name(T *y, T *keys, T *values, const int *columns, const int *places, const int *sequences, \
			const int *lengths, const float *turns, const float *long_turns, int stride, int queries, int kv, int size, int valueSize, int first, \
			int pairs, int neighbours, int long_from, int capacity) { \
		place<T>(y, keys, values, columns, places, sequences, lengths, turns, long_turns, stride, queries, kv, size, valueSize, first, pairs, \
			neighbours, long_from, capacity); } \
	extern "C" __global__ void __launch_bounds__(256) attend_rows_##name(T *out, const T *y, const int *starts, const float *slopes, int outStride, int stride, int heads, int kv, \
			int size, int valueSize, int queryStep, int keyBase, int keyStep, int valueBase, int valueStep, float scale, float cap, int window, int coarse) { \
		attend_rows<T>(out, y, starts, slopes, outStride, stride, heads, kv, size, valueSize, queryStep, keyBase, keyStep, valueBase, valueStep, \
			scale, cap, window, coarse); } \
	extern "C" __global__ void __launch_bounds__(256) attend_cache_##name(T *out, const T *y, const T *keys, const T *values, const int *lengths, const float *slopes, \
			int outStride, int stride, int heads, int kv, int size, int valueSize, int queryStep, int capacity, float scale, float cap, int window, int coarse) { \
		attend_cache<T>(out, y, keys, values, lengths, slopes, outStride, stride, heads, kv, size, valueSize, queryStep, capacity, scale, cap, window, coarse); } \
	extern "C" __global__ void assemble_##name(T *y, const T *queries, const T *kv, const T *shared, int queryStride, int sharedStride, int heads, \
			int size, int own, int valueSize) { assemble<T>(y, queries, kv, shared, queryStride, sharedStride, heads, size, own, valueSize); }
FOR_TYPES(DEFINE_HEADS)
