package decoder

// Attention is causal attention: softmax(Scale·q·kᵀ)·v for each query head, and Out of the heads side by side.
type Attention struct {
	Heads
	// In are the layers that make queries, keys and values. Heads says in which columns of their outputs, side by
	// side, each head is. Empty if Latent is set.
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

// SpanNorm normalises columns of the outputs of attention's first layers: from each of Columns on as many as the
// norm is wide.
type SpanNorm struct {
	Norm
	Columns []int
}

// Latent is multi-head latent attention (DeepSeek-V2). The keys and values of all heads are computed from one
// short vector, and in most models the queries from another. Keys have additional channels for positions, which
// all heads share.
type Latent struct {
	// Down makes the queries or their short vector, then the short vector of keys and values with the shared
	// channels behind it.
	Down    [2]Linear
	Queries Raise // missing if Down[0] makes the queries
	KV      Raise // makes for each head its key's own channels and its value
	Shared  int   // channels of a key that all heads share, its last
}

// Raise makes long vectors from short ones: Up(Norm(x)). The zero value is none.
type Raise struct {
	Norm Norm
	Up   Linear
}

// Missing reports whether there is none.
func (r Raise) Missing() bool { return r.Up.Weight == "" }
