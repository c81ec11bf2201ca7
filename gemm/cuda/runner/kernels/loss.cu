// Losses and divergences from float logits. One block per row.

// logit is cap·tanh(scale·x/cap), or scale·x without a cap.
__device__ __forceinline__ float logit(float x, float scale, float cap) {
	x *= scale;
	return cap > 0 ? cap * tanhf(x / cap) : x;
}

// log_sum is log Σ exp of a row of logits.
__device__ double log_sum(const float *x, int n, float scale, float cap) {
	float top = -INFINITY;
	for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, logit(x[i], scale, cap));
	top = block_max(top);
	double sum = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) sum += (double)expf(logit(x[i], scale, cap) - top);
	return (double)top + log(block_sum(sum));
}

// loss: nats[row] = log Σ exp(y) - y[target]; 0 where the target is negative.
extern "C" __global__ void loss(double *nats, const float *logits, const int *targets, int vocab, float scale, float cap) {
	wide row = blockIdx.x;
	const float *x = logits + row * vocab;
	int target = targets[row];
	double sum = target < 0 ? 0 : log_sum(x, vocab, scale, cap);
	if (threadIdx.x == 0) nats[row] = target < 0 ? 0 : sum - (double)logit(x[target], scale, cap);
}

// divergence: kl[row] = KL(softmax(p) ‖ softmax(q)).
extern "C" __global__ void divergence(double *kl, const float *p, const float *q, int vocab, float scale, float cap) {
	wide row = blockIdx.x;
	const float *a = p + row * vocab, *b = q + row * vocab;
	double logP = log_sum(a, vocab, scale, cap), logQ = log_sum(b, vocab, scale, cap), mean = 0;
	for (int i = threadIdx.x; i < vocab; i += blockDim.x) {
		double u = logit(a[i], scale, cap), v = logit(b[i], scale, cap);
		mean += exp(u - logP) * (u - v);
	}
	mean = block_sum(mean);
	if (threadIdx.x == 0) kl[row] = mean + (logQ - logP);
}

// largest: the first of the largest logits of a row, a greedy decoder's next token.
extern "C" __global__ void largest(int *token, const float *logits, int vocab) {
	wide row = blockIdx.x;
	const float *x = logits + row * vocab;
	float top = -INFINITY;
	int at = 0x7fffffff;
	for (int i = threadIdx.x; i < vocab; i += blockDim.x)
		if (x[i] > top) { top = x[i]; at = i; }
	float all = block_max(top);
	__shared__ int least;
	if (threadIdx.x == 0) least = 0x7fffffff;
	__syncthreads();
	if (top == all) atomicMin(&least, at);
	__syncthreads();
	if (threadIdx.x == 0) token[row] = least;
}
