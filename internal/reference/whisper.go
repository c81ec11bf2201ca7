package reference

import "fmt"

// whisper computes Whisper: the tokens' logits, given a recording in Values. Without a head it returns the decoder's
// hidden states, then the encoder's. A classifier returns one row.
func whisper(p *model, in Inputs) [][]float64 {
	prefix := p.under("encoder.conv1.weight", "model.", "")
	states := p.hear(prefix+"encoder.", in.Values)
	heard := states[len(states)-1]
	if p.ends("ForAudioClassification") {
		if p.is("use_weighted_layer_sum", false) {
			heard = p.layerSum(states)
		}
		mean := make([]float64, p.count("classifier_proj_size", 256))
		for _, x := range heard {
			mean = add(mean, times(p.linear("projector", x), 1/float64(len(heard))))
		}
		return [][]float64{p.linear("classifier", mean)}
	}

	hidden, heads := p.count("d_model"), p.count("decoder_attention_heads")
	prefix += "decoder."
	h := make([][]float64, len(in.Tokens))
	for t, token := range in.Tokens {
		h[t] = add(p.row(prefix+"embed_tokens.weight", int(token), hidden), p.row(prefix+"embed_positions.weight", t, hidden))
	}
	for layer := range p.count("decoder_layers") {
		at := fmt.Sprintf("%slayers.%d.", prefix, layer)
		h = plus(h, p.selfAttention(at+"self_attn.", each(h, p.layerNorm(at+"self_attn_layer_norm", 1e-5)), heads, backwards))
		h = plus(h, p.crossAttention(at+"encoder_attn.", each(h, p.layerNorm(at+"encoder_attn_layer_norm", 1e-5)), heard, heads, around))
		h = plus(h, p.whisperMLP(at, h))
	}
	h = each(h, p.layerNorm(prefix+"layer_norm", 1e-5))
	switch {
	case p.ends("Model"):
		return append(h, heard...)
	case p.is("tie_word_embeddings", true):
		return each(h, p.layer(prefix+"embed_tokens"))
	}
	return each(h, p.layer("proj_out"))
}

// hear computes the encoder. It returns the input of each layer, and the output of the last norm.
func (p *model) hear(prefix string, values []float64) (states [][][]float64) {
	hidden, heads, gelu := p.count("d_model"), p.count("encoder_attention_heads"), activation("gelu")
	h := p.frames(values)
	for i, name := range []string{"conv1", "conv2"} {
		h = each(windows(h, i+1), func(x []float64) []float64 { return apply(gelu, p.linear(prefix+name, x)) })
	}
	for t := range h {
		h[t] = add(h[t], p.row(prefix+"embed_positions.weight", t, hidden))
	}
	for layer := range p.count("encoder_layers") {
		states = append(states, h)
		at := fmt.Sprintf("%slayers.%d.", prefix, layer)
		h = plus(h, p.selfAttention(at+"self_attn.", each(h, p.layerNorm(at+"self_attn_layer_norm", 1e-5)), heads, around))
		h = plus(h, p.whisperMLP(at, h))
	}
	return append(states, each(h, p.layerNorm(prefix+"layer_norm", 1e-5)))
}

// layerSum averages all layers' states. If the checkpoint has layer_weights, the states are weighted by their
// softmax.
func (p *model) layerSum(states [][][]float64) (sum [][]float64) {
	scores := p.optional("layer_weights")
	if scores == nil {
		scores = make([]float64, len(states))
	}
	for t := range states[0] {
		var layers [][]float64
		for _, h := range states {
			layers = append(layers, h[t])
		}
		sum = append(sum, attend(layers, func(layer int) float64 { return scores[layer] }))
	}
	return sum
}

func (p *model) whisperMLP(at string, h [][]float64) [][]float64 {
	act := activation(p.text("activation_function", "gelu"))
	return each(each(h, p.layerNorm(at+"final_layer_norm", 1e-5)), p.mlp(at+"fc1", at+"fc2", act))
}

// features returns the number of values of a recording: two frames for every position of the encoder.
func (p *model) features() int { return 2 * p.count("num_mel_bins") * p.count("max_source_positions") }

// frames converts features [bins, frames] to one vector of bins per frame.
func (p *model) frames(values []float64) [][]float64 {
	bins, n := p.count("num_mel_bins"), 2*p.count("max_source_positions")
	if len(values) != p.features() {
		failf("the recording has %d values, but config.json requires %d", len(values), p.features())
	}
	x := make([][]float64, n)
	for t := range x {
		for bin := range bins {
			x[t] = append(x[t], values[bin*n+t])
		}
	}
	return x
}

// windows returns the input windows of a convolution over three positions: [channels, 3] at every stride-th position,
// padded with zeros.
func windows(x [][]float64, stride int) (seen [][]float64) {
	for t := 0; t < len(x); t += stride {
		var one []float64
		for channel := range x[t] {
			for u := t - 1; u <= t+1; u++ {
				v := 0.0
				if u >= 0 && u < len(x) {
					v = x[u][channel]
				}
				one = append(one, v)
			}
		}
		seen = append(seen, one)
	}
	return seen
}
