package decoder

// FFN is a feed-forward network: Out(act(y)), or Out(act(gate)·up) if y is gate and up concatenated.
type FFN struct {
	In         []Linear // y has their concatenated outputs
	Gated      bool
	Activation Activation
	Out        Linear
}

// Neurons returns the number of Out's inputs.
func (f *FFN) Neurons() int { return f.Out.Inputs }

// Activation is the function of an FFN's neurons.
type Activation int

// The activation functions.
const (
	SiLU     Activation = iota + 1 // x·sigmoid(x)
	GELU                           // x·Φ(x)
	GELUTanh                       // x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
	ReLU
)

// Experts are feed-forward networks. A router chooses a few of them for each token, and weights for their sum.
type Experts struct {
	Router     Linear
	Correction string // tensor [experts] that is added to scores to choose experts; empty: none
	Routing    Routing
	Each       []*FFN
}

// Routing has the rules by which a router's outputs give a token's experts.
type Routing struct {
	Used      int  // number of experts per token
	Sigmoid   bool // scores are sigmoids, not a softmax
	Normalize bool // a token's weights are divided by their sum
	Scale     float64
	// If Groups is above 0, experts are chosen only from the GroupsUsed groups with the highest scores. A group's score is the
	// sum of its Best largest scores.
	Groups, GroupsUsed, Best int
}
