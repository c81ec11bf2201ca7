package reference

import "math"

// rotary rotates pairs of channels by position·frequency, and scales them.
type rotary struct {
	frequency []float64
	scale     float64
}

// rotary reads the frequencies for n rotary channels.
func (p *model) rotary(size int) rotary {
	theta, at := p.number("rope_theta", p.number("rotary_emb_base", 10000)), "rope_scaling."
	if p.field("rope_parameters") != nil {
		at = "rope_parameters."
		theta = p.number("rope_parameters.rope_theta", theta)
	}
	return p.rotaryAt(at, theta, size)
}

// rotaryAt is rotary with parameters at a place in config.json, such as "rope_scaling.".
func (p *model) rotaryAt(at string, theta float64, size int) rotary {
	r := rotary{scale: 1}
	for i := range size / 2 {
		f := math.Pow(theta, -2*float64(i)/float64(size))
		switch kind := p.text(at+"rope_type", p.text(at+"type", "default")); kind {
		case "default":
		case "linear":
			f /= p.number(at+"factor", 1)
		case "llama3":
			f = p.llama3(at, f)
		case "yarn":
			f *= p.yarnSpeed(at, theta, i, size)
			r.scale = p.yarnScale(at)
		default:
			failf("config.json: %srope_type %q is unknown", at, kind)
		}
		r.frequency = append(r.frequency, f)
	}
	return r
}

// llama3 returns a frequency after Llama 3.1's scaling.
func (p *model) llama3(at string, f float64) float64 {
	factor, length := p.number(at+"factor", 1), p.number(at+"original_max_position_embeddings", 8192)
	low, high := p.number(at+"low_freq_factor", 1), p.number(at+"high_freq_factor", 4)
	wave := 2 * math.Pi / f
	if wave > length/low {
		return f / factor
	}
	if wave < length/high {
		return f
	}
	smooth := (length/wave - low) / (high - low)
	return (1-smooth)*f/factor + smooth*f
}

// halves rotates the pairs (x[i], x[i+n/2]). Channels after the n rotary channels do not change.
func (r rotary) halves(x []float64, position int) []float64 {
	y, n := append([]float64{}, x...), len(r.frequency)
	for i, f := range r.frequency {
		y[i], y[i+n] = r.turn(x[i], x[i+n], float64(position)*f)
	}
	return y
}

// neighbours rotates the pairs (x[2i], x[2i+1]).
func (r rotary) neighbours(x []float64, position int) []float64 {
	y := append([]float64{}, x...)
	for i, f := range r.frequency {
		y[2*i], y[2*i+1] = r.turn(x[2*i], x[2*i+1], float64(position)*f)
	}
	return y
}

func (r rotary) turn(a, b, angle float64) (float64, float64) {
	sin, cos := math.Sincos(angle)
	return r.scale * (a*cos - b*sin), r.scale * (a*sin + b*cos)
}
