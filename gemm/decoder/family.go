package decoder

import "github.com/lowtoggle/lowtoggle/weights/arch"

// family is the arithmetic of an architecture. It names modules as package arch does (arch.Claim.Kind). A block
// is h += attention(h), then h += ffn(h).
type family struct {
	embedding embeddingData
	norm      arch.NormKind
	epsilon   field // added to a norm's mean square
	weighted  field // norms have weights if this is true or has no name
	attention attentionData
	ffn       ffnData
	parallel  []field // if one of these is true: h += attention(h) + ffn(h)
	residual  factor  // factor of everything that is added to the residual stream
	final     string  // norm before the head
	head      headData
	must      []field // fields with the only values that are implemented
}

// embeddingData describes how tokens become hidden states.
type embeddingData struct {
	tokens    string // its rows are looked up by token
	positions string // its rows are looked up by position, and added; empty: none
	offset    int    // the row of the first position
	scale     factor // factor of the tokens' rows
	norm      string // norm of the sum; empty: none
}

// attentionData are attention's modules.
type attentionData struct {
	norm []string // norm of the input: the first one that the checkpoint has; nil: no norm
	post string   // norm of the output; empty: none
	// in are q, k and v, or one layer with all three. One layer has them one after the other, or with byHead, KV head by KV head:
	// the queries of the group, the key and the value.
	in     []string
	byHead bool
	latent *latentData // instead of in
	// Norms of queries and keys, over one head or over all heads; empty: none.
	qNorm, kNorm string
	out          string

	scale  factor // factor of scores; default 1/√(channels of a head)
	cap    field  // scores are cap·tanh(score/cap); null or 0: no cap
	window windowData
	rotary *rotaryData // nil: none
	alibi  *alibiData  // nil: none; if used, it replaces rotary
}

// windowData describes the layers whose queries see only the last keys.
type windowData struct {
	size   field // number of keys, with the query's own; null: all
	used   field // bool; unset: all
	first  field // first layer that has a window
	period field // every period-th layer has no window; 0: all layers have one
	listed bool  // "layer_types" may list the layers with a window instead
}

// rotaryData are rotary positions.
type rotaryData struct {
	theta      field
	share      field    // share of each head's channels that is rotated; no name: always all
	size       string   // field with the number of rotated channels, if config.json has one
	neighbours field    // bool: pairs are adjacent channels, not half a head apart
	local      field    // theta of layers with a window, which are then not scaled; no name: the same theta as other layers
	long       []string // further names of longrope
	limit      field    // longest sequence
}

// alibiData are slopes over positions.
type alibiData struct {
	used field // bool
	// coarse: the bias is rounded to BF16, and is added to the scores before they are scaled.
	coarse bool
}

// latentData is multi-head latent attention (DeepSeek-V2): queries, keys and values are computed from low-rank vectors.
type latentData struct {
	q                    string // layer of the queries, if they are not computed from a short vector
	qDown, qNorm, qUp    string
	kvDown, kvNorm, kvUp string
	epsilon              float64
}

// ffnData are a feed-forward network's modules.
type ffnData struct {
	norm []string // as in attentionData; in a parallel block without such a norm, attention's norm
	post string
	neuronsData
	activation field
	experts    *expertsData // in layers with a router
}

// neuronsData has the layers before and after the neurons.
type neuronsData struct {
	in    []string // gate and up, or one layer with gate then up, or up alone
	gated bool
	out   string
}

// expertsData are routed experts.
type expertsData struct {
	router     string
	correction string // added to scores to choose experts; empty: none
	each       neuronsData
	shared     neuronsData // experts for all tokens; none if out is empty
	used       field       // number of experts per token
	sigmoid    bool        // scores are sigmoids, not a softmax
	normalize  field       // bool: a token's weights sum to 1
	scale      factor      // factor of the weights
	// Experts are chosen from the best groups. A group's score is the sum of its best experts' scores.
	groups, groupsUsed field // default 0: no groups
	method             field // groups are used only if this field has the value grouped
	grouped            string
	best               int
}

// headData describes how logits are computed.
type headData struct {
	name  string
	tied  field  // the head is the embedding
	scale factor // factor of logits
	cap   field  // logits are cap·tanh(logit/cap); null or 0: no cap
}

// field is a field of config.json and its default. Without a name it is a constant.
type field struct {
	name  string
	value any
}

// factor is a number of config.json raised to a power. Without a name it is 1.
type factor struct {
	field
	power float64
}
