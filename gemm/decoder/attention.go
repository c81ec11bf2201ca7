package decoder

// Attention is causal attention: softmax(Scale·q·kᵀ)·v for each query head, then Out of the concatenated heads.
type Attention struct {
	Heads
	// In are the layers that compute queries, keys and values. Heads says which columns of their concatenated
	// outputs belong to which head. In is empty if Latent is set.
	In     []Linear
	Norms  []SpanNorm // of queries and keys; none in most families
	Latent *Latent    // makes queries, keys and values instead of In
	Rotary *Rotary    // nil: no rotary positions
	ALiBi  *ALiBi     // nil: no bias by distance
	Scale  float32
	Cap    float64 // scores are Cap·tanh(score/Cap); 0: no cap
	Window int     // the number of keys that a query sees, its own the last; 0: all before it
	Out    Linear
}

// SpanNorm normalises spans of columns of the outputs of attention's first layers. A span begins at each of Columns and
// has the norm's width.
type SpanNorm struct {
	Norm
	Columns []int
}

// Latent is multi-head latent attention (DeepSeek-V2). The keys and values of all heads are computed from one low-rank
// vector, and in most models the queries from another. Keys have additional channels with rotary positions, which all
// heads share.
type Latent struct {
	// Down computes the queries or their low-rank vector, then the low-rank vector of keys and values, followed by the
	// shared channels.
	Down    [2]Linear
	Queries Raise // missing if Down[0] computes the queries
	KV      Raise // computes each head's own key channels and its value
	Shared  int   // the last channels of a key, which all heads share
}

// Raise is an up-projection from a low-rank vector: Up(Norm(x)). The zero value means that there is none.
type Raise struct {
	Norm Norm
	Up   Linear
}

// Missing reports whether there is none.
func (r Raise) Missing() bool { return r.Up.Weight == "" }
