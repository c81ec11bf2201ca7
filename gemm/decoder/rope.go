package decoder

import (
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// rope reads the rotary positions of layers of a kind.
type rope struct {
	*config
	data  *rotaryData
	at    string  // prefix of the fields, such as "rope_scaling."; empty: no scaling
	theta float64 // base of the frequencies
	limit float64 // longest sequence
}

// rope returns the reader of rotary positions for layers of a kind. Newer files have rope_parameters. Older files have separate
// fields and rope_scaling.
func (c *config) rope(data *rotaryData, kind string) rope {
	r := rope{config: c, data: data, at: "rope_scaling.", limit: c.positive(data.limit.name, data.limit.value.(float64))}
	r.theta = c.positive(data.theta.name, data.theta.value.(float64))
	newer, older := c.object("rope_parameters"), c.object("rope_scaling")
	if newer && older {
		c.failf("has both rope_parameters and rope_scaling: keep the one that applies")
	}
	if data.local.name != "" && kind == slidingAttention {
		r.theta, r.at = c.positive(data.local.name, data.local.value.(float64)), ""
	}
	if newer {
		r.at = "rope_parameters."
		if data.local.name != "" {
			r.at += kind + "."
		}
		r.theta = c.positive(r.at+"rope_theta", r.theta)
	}
	return r
}

// kind returns the kind of scaling.
func (r rope) kind() string {
	if r.at == "" {
		return "default"
	}
	kind := get(r.config, r.at+"rope_type", get(r.config, r.at+"type", "default"))
	if slices.Contains(r.data.long, kind) {
		return "longrope"
	}
	return kind
}

// rotary returns the rotary positions of heads with size channels.
func (r rope) rotary(size int) *Rotary {
	first, n := r.turning(size)
	f := make([]float64, n/2)
	for i := range f {
		// It is rounded as in the models' own code.
		f[i] = float64(float32(1 / elementary.Pow(r.theta, float64(2*i)/float64(n))))
	}
	length := 1.0
	var long []float64
	switch kind := r.kind(); kind {
	case "default":
	case "linear":
		r.divide(f, r.positive(r.at+"factor", 0))
	case "llama3":
		r.llama3(f)
	case "yarn":
		length = r.yarn(f)
	case "longrope":
		long, length = r.longRope(f)
	default:
		r.failf("%srope_type is %q; the forward pass supports default, linear, llama3, longrope and yarn", r.at, kind)
	}
	turn := &Rotary{Frequencies: newFrequencies(f, length), First: first, Neighbours: r.is(r.data.neighbours)}
	if long != nil {
		f := newFrequencies(long, length)
		turn.Long, turn.LongFrom = &f, int(r.original())
	}
	return turn
}

func newFrequencies(radians []float64, length float64) Frequencies {
	f := Frequencies{Length: float32(length)}
	for _, v := range radians {
		f.Radians = append(f.Radians, float32(v))
	}
	return f
}

// turning returns the rotated channels of a head: n channels from first on.
func (r rope) turning(size int) (first, n int) {
	switch data := r.data; {
	case data.size != "":
		n = r.length(data.size, 0)
		first = size - n
	case data.share.name != "":
		share := r.positive(data.share.name, data.share.value.(float64))
		n = int(r.positive(r.at+"partial_rotary_factor", share) * float64(size))
	default:
		r.refuse([]field{{"partial_rotary_factor", 1.0}, {r.at + "partial_rotary_factor", 1.0}})
		n = size
	}
	if n%2 != 0 || n > size {
		r.failf("%d of the %d channels of a head rotate: the number must be even, and at most the number of channels", n, size)
		return 0, 0
	}
	return first, n
}

// original returns the longest sequence before scaling.
func (r rope) original() float64 {
	return r.positive("original_max_position_embeddings", r.positive(r.at+"original_max_position_embeddings", r.limit))
}

func (r rope) divide(f []float64, by float64) {
	for i := range f {
		f[i] /= by
	}
}

// llama3 applies Llama 3.1's scaling: low frequencies are divided by a factor, high frequencies do not change, and frequencies
// between are blended.
func (r rope) llama3(f []float64) {
	factor, low, high := r.positive(r.at+"factor", 0), r.positive(r.at+"low_freq_factor", 0), r.positive(r.at+"high_freq_factor", 0)
	length := r.original()
	if high <= low {
		r.failf("%shigh_freq_factor is %v, but must be above low_freq_factor (%v)", r.at, high, low)
	}
	for i, v := range f {
		switch turns := length * v / (2 * math.Pi); {
		case turns < low:
			f[i] = v / factor
		case turns <= high:
			smooth := (turns - low) / (high - low)
			f[i] = float64((1-smooth)*v/factor) + float64(smooth*v)
		}
	}
}

// yarn divides low frequencies, with few rotations within the original length, by a factor. High frequencies do not change, and a
// ramp over the pairs connects the two ranges (Peng et al., ICLR 2024). It returns the factor of the rotated channels.
func (r rope) yarn(f []float64) (length float64) {
	original := r.original()
	if _, there := r.find(r.at + "factor"); !there {
		r.failf("%sfactor is missing, which yarn needs", r.at)
	}
	factor := r.positive(r.at+"factor", r.limit/original)
	pair := func(turns float64) float64 {
		return float64(len(f)) * elementary.Log(original/(turns*2*math.Pi)) / elementary.Log(r.theta)
	}
	low, high := pair(r.positive(r.at+"beta_fast", 32)), pair(r.positive(r.at+"beta_slow", 1))
	if get(r.config, r.at+"truncate", true) {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(2*len(f)-1))
	if low == high {
		high += 0.001
	}
	for i, v := range f {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		f[i] = float64(v/factor*ramp) + float64(v*(1-ramp))
	}
	length = growth(factor, 1)
	if part, all := get(r.config, r.at+"mscale", 0.0), get(r.config, r.at+"mscale_all_dim", 0.0); part != 0 && all != 0 {
		length = growth(factor, part) / growth(factor, all)
	}
	return r.positive(r.at+"attention_factor", length)
}

// growth returns YaRN's factor of the channels (mscale).
func growth(factor, share float64) float64 {
	if factor <= 1 {
		return 1
	}
	return float64(0.1*share*elementary.Log(factor)) + 1
}

// whole returns the factor of all channels of queries and keys, rotated or not, that mscale_all_dim asks for.
func (r rope) whole() float64 {
	share := get(r.config, r.at+"mscale_all_dim", 0.0)
	if share == 0 || r.kind() == "default" {
		return 1
	}
	return growth(r.positive(r.at+"factor", r.limit/r.original()), share)
}

// longRope divides each frequency by its own factor (Ding et al., 2024). f has the frequencies for sequences within the
// original length, long those for longer sequences.
func (r rope) longRope(f []float64) (long []float64, length float64) {
	original := r.original()
	long = slices.Clone(f)
	r.divideEach(f, r.at+"short_factor")
	r.divideEach(long, r.at+"long_factor")
	length = 1
	if factor := r.positive(r.at+"factor", r.limit/original); factor > 1 {
		length = math.Sqrt(1 + elementary.Log(factor)/elementary.Log(original))
	}
	return long, r.positive(r.at+"attention_factor", length)
}

// divideEach divides each frequency by its number in a list of config.json.
func (r rope) divideEach(f []float64, name string) {
	list, _ := r.lookup(name).([]any)
	if len(list) != len(f) {
		r.failf("%s has %d numbers, but needs one for each of %d pairs of channels", name, len(list), len(f))
		return
	}
	for i, v := range list {
		by, ok := v.(float64)
		if !ok || !(by > 0) {
			r.failf("%s contains %v, but may contain only numbers above 0", name, v)
			by = 1
		}
		f[i] /= by
	}
}
