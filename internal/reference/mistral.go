package reference

// mistral computes Mistral 7B: all layers have a sliding window, if config.json has one.
func mistral(p *model, in Inputs) [][]float64 {
	for name, as7B := range map[string]float64{ // fields that a text_config leaves out
		"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
	} {
		p.presume(name, as7B)
	}
	d := p.llama()
	d.sees = sliding(p.window(4096))
	return d.run(in)
}
