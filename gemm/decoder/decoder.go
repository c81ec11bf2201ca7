package decoder

// Decoder describes the computation of a model.
type Decoder struct {
	Family        string
	Hidden, Vocab int // channels of the residual stream; tokens of the vocabulary
	Limit         int // longest sequence
	Embedding     Embedding
	Blocks        []Block
	Head          Head
}

// Embedding is the first residual stream: Norm(Scale·row of the token + row of the position).
type Embedding struct {
	Tokens string // tensor [Vocab, Hidden]
	Scale  float32
	// Positions is a tensor [PositionRows, Hidden] with a row for each position, from row Offset on. Empty: none.
	Positions            string
	PositionRows, Offset int
	Norm                 Norm // may be missing
}

// Head computes logits: Cap·tanh(Scale·y/Cap) with y = Linear(Norm(h)).
type Head struct {
	Norm   Norm
	Linear Linear
	Tied   bool // the weight is the embedding's
	Scale  float32
	Cap    float64 // 0: no cap
}

// Block is a decoder block: its steps, one after the other.
type Block []Step

// Step adds the outputs of all branches to the residual stream. All branches read the same stream.
type Step []Branch

// Branch is a norm and the parts that read its output.
type Branch struct {
	Norm  Norm // missing: the parts read the residual stream itself
	Parts []Part
}

// Part computes Scale·Norm(f(x)), where f is Attention, FFN or Experts, whichever is set.
type Part struct {
	Attention *Attention
	FFN       *FFN
	Experts   *Experts
	Norm      Norm // norm of the output; may be missing
	Scale     float32
}
