package decoder

// Layer is a linear layer and its place.
type Layer struct {
	Tensor          string // its weight's name
	Block           int    // number of its block; the number of blocks for the head
	Step            int    // step of the block: attention and FFN are two steps, unless they read the same stream
	Inputs, Outputs int
	// Routed is set for an expert's layer. Such a layer gets only the tokens that the router sends to the expert, and possibly
	// none.
	Routed bool
}

// Layers returns the linear layers in the order of computation, without a head that is tied to the embedding.
func (d *Decoder) Layers() []Layer {
	var all []Layer
	add := func(block, step int, layers ...Linear) {
		for _, l := range layers {
			all = append(all, Layer{l.Weight, block, step, l.Inputs, l.Outputs, l.Routed})
		}
	}
	for i, block := range d.Blocks {
		for k, step := range block {
			for _, b := range step {
				add(i, k, b.First()...)
				for _, p := range b.Parts {
					add(i, k, p.rest()...)
				}
			}
		}
	}
	if !d.Head.Tied {
		add(len(d.Blocks), 0, d.Head.Linear)
	}
	return all
}

// First returns the layers of all parts that read the branch's norm.
func (b Branch) First() []Linear {
	var all []Linear
	for _, p := range b.Parts {
		all = append(all, p.first()...)
	}
	return all
}

// first returns the layers that read the part's input, rest the layers after them. Both are in the order of computation.
func (p Part) first() []Linear {
	switch {
	case p.Experts != nil:
		return []Linear{p.Experts.Router}
	case p.FFN != nil:
		return p.FFN.In
	case p.Attention.Latent != nil:
		return p.Attention.Latent.Down[:]
	}
	return p.Attention.In
}

func (p Part) rest() []Linear {
	switch {
	case p.Experts != nil:
		var all []Linear
		for _, f := range p.Experts.Each {
			all = append(append(all, f.In...), f.Out)
		}
		return all
	case p.FFN != nil:
		return []Linear{p.FFN.Out}
	case p.Attention.Latent == nil:
		return []Linear{p.Attention.Out}
	}
	l := p.Attention.Latent
	if l.Queries.Missing() {
		return []Linear{l.KV.Up, p.Attention.Out}
	}
	return []Linear{l.Queries.Up, l.KV.Up, p.Attention.Out}
}
