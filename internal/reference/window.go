package reference

// causal is the causal mask.
func causal(_, t, u int) bool { return u <= t }

// sliding is causal attention to the last width positions, including t. A width of 0 means no limit.
func sliding(width int) func(layer, t, u int) bool {
	return func(_, t, u int) bool { return u <= t && (width == 0 || u > t-width) }
}

// slidingIn is sliding in the layers that config.json lists, and causal in all others. Without a list, rule selects
// the layers.
func (p *model) slidingIn(rule func(layer int) bool, width int) func(layer, t, u int) bool {
	narrow := sliding(width)
	return func(layer, t, u int) bool {
		if p.slides(layer, rule) {
			return narrow(layer, t, u)
		}
		return causal(layer, t, u)
	}
}

// slides reports whether a layer has a sliding window.
func (p *model) slides(layer int, rule func(layer int) bool) bool {
	kinds, _ := p.field("layer_types").([]any)
	if kinds == nil {
		return rule(layer)
	}
	if layer >= len(kinds) {
		failf("config.json: layer_types has no layer %d", layer)
	}
	return kinds[layer] == "sliding_attention"
}

// window returns the width of the sliding window; 0, or null in config.json, means no limit.
func (p *model) window(missing int) int {
	return int(p.optionalNumber("sliding_window", float64(missing)))
}
