package decoder

// Input is an input of linear layers.
type Input struct {
	Layers []Linear // the layers that read it, at least one
	Block  int      // the layers' block; the number of blocks for the head
}

// Inputs returns the inputs of the linear layers in the order of computation. Together they have the layers of [Decoder.Layers],
// in the same order.
func (d *Decoder) Inputs() (all []Input) {
	for i, b := range d.Blocks {
		for _, s := range b {
			for _, branch := range s {
				all = append(all, Input{branch.First(), i})
				for _, p := range branch.Parts {
					for _, layers := range p.restByInput() {
						all = append(all, Input{layers, i})
					}
				}
			}
		}
	}
	if !d.Head.Tied {
		all = append(all, Input{[]Linear{d.Head.Linear}, len(d.Blocks)})
	}
	return all
}

// restByInput returns the layers of rest, grouped by their input.
func (p Part) restByInput() (all [][]Linear) {
	if p.Experts != nil {
		for _, f := range p.Experts.Each {
			all = append(all, f.In, []Linear{f.Out})
		}
		return all
	}
	for _, l := range p.rest() {
		all = append(all, []Linear{l})
	}
	return all
}
