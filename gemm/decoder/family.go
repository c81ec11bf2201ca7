package decoder

import "github.com/lowtoggle/lowtoggle/weights/arch"

// family is the arithmetic of an architecture. It names modules as package arch does (arch.Claim.Kind). A block
// is h += attention(h), then h += ffn(h).
type family struct {
	embedding embeddingData
	norm      arch.NormKind
	epsilon   field // added to a norm's mean square
	weighted  field // unset: norms have no weights; no name: they have
	attention attentionData
	ffn       ffnData
	parallel  []field // one of them set: h += attention(h) + ffn(h)
	residual  factor  // of all that is added to the residual stream
	final     string  // norm before the head
	head      headData
	must      []field // other values than these are not implemented
}

// embeddingData describes how tokens become hidden states.
type embeddingData struct {
	tokens    string // its rows are looked up by token
	positions string // its rows are looked up by position, and added; empty: none
	offset    int    // the row of the first position
	scale     factor // of the tokens' rows
	norm      string // of the sum; empty: none
}

// attentionData are attention's modules.
type attentionData struct {
	norm []string // of the input, the first that the checkpoint has; none listed: the residual stream itself
	post string   // norm of the output; empty: none
	// in are q, k and v, or one layer that has all three: one after the other, or where byHead is set
	// KV head by KV head, each the queries of its group, the key and the value.
	in     []string
	byHead bool
	latent *latentData // instead of in
	// Norms of queries and keys, as wide as one head or as all; empty: none.
	qNorm, kNorm string
	out          string

	scale  factor // of scores; default 1/√(channels of a head)
	cap    field  // scores are cap·tanh(score/cap); null or 0: not
	window windowData
	rotary *rotaryData // nil: none
	alibi  *alibiData  // nil: none; where it holds it takes the place of rotary
}

// windowData describes the layers whose queries see only the last keys.
type windowData struct {
	size   field // how many, the query's own among them; null: all
	used   field // bool; unset: all
	first  field // first layer that has a window
	period field // every period-th layer has no window; 0: all layers have one
	listed bool  // "layer_types" may list them instead
}

// rotaryData are rotary positions.
type rotaryData struct {
	theta      field
	share      field    // the share of each head's channels that is rotated; no name: all, and nothing else is implemented
	size       string   // the number of them, where config.json says it itself
	neighbours field    // bool: pairs are adjacent channels, not half a head apart
	local      field    // theta of layers with a window, which are then not scaled; no name: as the others'
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
	q                    string // queries, where they are not made of a short vector
	qDown, qNorm, qUp    string
	kvDown, kvNorm, kvUp string
	epsilon              float64
}

// ffnData are a feed-forward network's modules.
type ffnData struct {
	norm []string // as attention's; parallel and none of them there: attention's own
	post string
	neuronsData
	activation field
	experts    *expertsData // in layers that have its router
}

// neuronsData are the layers around neurons.
type neuronsData struct {
	in    []string // gate and up, or one that has both one after the other, or one without a gate
	gated bool
	out   string
}

// expertsData are routed experts.
type expertsData struct {
	router     string
	correction string // added to scores while choosing; empty: none
	each       neuronsData
	shared     neuronsData // for all tokens; none where it has no out
	used       field       // how many experts a token gets
	sigmoid    bool        // scores are sigmoids, not a softmax
	normalize  field       // bool: a token's weights sum to 1
	scale      factor      // of weights
	// Experts are chosen from the best groups. A group's score is the sum of its best experts'.
	groups, groupsUsed field // default 0: there are none
	method             field // chooses from groups where it is that of grouped
	grouped            string
	best               int
}

// headData describes how logits are computed.
type headData struct {
	name  string
	tied  field  // the head is the embedding
	scale factor // of logits
	cap   field  // logits are cap·tanh(logit/cap); null or 0: not
}

// field is a field of config.json and its default. Without a name it is a constant.
type field struct {
	name  string
	value any
}

// factor is a number of config.json to a power. Without a name it is 1.
type factor struct {
	field
	power float64
}
