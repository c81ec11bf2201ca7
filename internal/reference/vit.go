package reference

import "fmt"

// vit computes ViT: a class token and the patches of an image. A classifier returns one row, for the class token. A
// decoder returns a row for every patch: the patch's pixels [channels, height, width] before they are shuffled.
func vit(p *model, in Inputs) [][]float64 {
	hidden, heads, act := p.count("hidden_size"), p.count("num_attention_heads"), activation(p.text("hidden_act", "gelu"))
	prefix := p.under("embeddings.cls_token", "vit.", "")
	norm := func(name string) func([]float64) []float64 {
		return p.layerNorm(name, p.number("layer_norm_eps", 1e-12))
	}
	h := append([][]float64{p.values(prefix + "embeddings.cls_token")},
		each(p.patches(in.Values), p.layer(prefix+"embeddings.patch_embeddings.projection"))...)
	for t := range h {
		h[t] = add(h[t], p.row(prefix+"embeddings.position_embeddings", t, hidden))
	}
	for layer := range p.count("num_hidden_layers") {
		at := fmt.Sprintf("%sencoder.layer.%d.", prefix, layer)
		x := each(h, norm(at+"layernorm_before"))
		q, k, v := each(x, p.layer(at+"attention.attention.query")), each(x, p.layer(at+"attention.attention.key")), each(x, p.layer(at+"attention.attention.value"))
		h = plus(h, each(multiHead(q, k, v, heads, around), p.layer(at+"attention.output.dense")))
		x = each(h, norm(at+"layernorm_after"))
		h = plus(h, each(x, p.mlp(at+"intermediate.dense", at+"output.dense", act)))
	}
	h = each(h, norm(prefix+"layernorm"))
	switch {
	case p.ends("Model"):
		return h
	case p.ends("ForMaskedImageModeling"):
		return each(h[1:], p.layer("decoder.0"))
	}
	return [][]float64{p.linear("classifier", h[0])}
}

// pixels returns the number of values of an image.
func (p *model) pixels() int {
	return p.count("num_channels", 3) * p.count("image_size") * p.count("image_size")
}

// patches cuts an image [channels, height, width] into square patches of the same layout, row by row.
func (p *model) patches(image []float64) (patches [][]float64) {
	size, patch := p.count("image_size"), p.count("patch_size")
	if len(image) != p.pixels() {
		failf("the image has %d values, but config.json requires %d", len(image), p.pixels())
	}
	for top := 0; top+patch <= size; top += patch {
		for left := 0; left+patch <= size; left += patch {
			var one []float64
			for channel := range p.count("num_channels", 3) {
				for y := top; y < top+patch; y++ {
					line := image[(channel*size+y)*size:]
					one = append(one, line[left:left+patch]...)
				}
			}
			patches = append(patches, one)
		}
	}
	return patches
}
