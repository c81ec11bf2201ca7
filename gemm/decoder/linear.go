package decoder

// Linear is a linear layer: the names of its tensors.
type Linear struct {
	Weight          string // [Outputs, Inputs], or [Inputs, Outputs] if Transposed is set
	Bias            string // empty: none
	Inputs, Outputs int
	Transposed      bool
	Routed          bool // the layer belongs to a routed expert
}
