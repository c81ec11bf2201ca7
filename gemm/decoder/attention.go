package decoder

// Attention is causal attention: softmax(Scale·q·kᵀ)·v for each query head, then Out of the concatenated heads.
type Attention struct {
	Heads
	// In are the layers that compute queries, keys and values. Heads maps the columns of their concatenated outputs to heads. In
	// is empty if Latent is set.
	In     []Linear
	Norms  []SpanNorm // norms of queries and keys; most families have none
	Latent *Latent    // computes queries, keys and values instead of In
	Rotary *Rotary    // nil: no rotary positions
	ALiBi  *ALiBi     // nil: no bias by distance
	Scale  float32
	Cap    float64 // scores are Cap·tanh(score/Cap); 0: no cap
	Window int     // number of keys that a query sees, up to its own; 0: all
	Out    Linear
}

// SpanNorm normalises spans of columns of the outputs of attention's first layers. A span begins at each of Columns and
// has the norm's width.
type SpanNorm struct {
	Norm
	Columns []int
}

// Latent is multi-head latent attention (DeepSeek-V2). One low-rank vector gives the keys and values of all heads, and in most
// models another one gives the queries. Keys have additional channels with rotary positions, which all heads share.
type Latent struct {
	// Down computes the queries or their low-rank vector, then the low-rank vector of keys and values, followed by the
	// shared channels.
	Down    [2]Linear
	Queries Raise // missing if Down[0] computes the queries
	KV      Raise // computes each head's own key channels and its value
	Shared  int   // the last channels of a key, which all heads share
}

// Raise is an up-projection from a low-rank vector: Up(Norm(x)). The zero value means no projection.
type Raise struct {
	Norm Norm
	Up   Linear
}

// Missing reports whether there is no up-projection.
func (r Raise) Missing() bool { return r.Up.Weight == "" }
