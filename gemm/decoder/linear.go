package decoder

// Linear is a linear layer: the names of its tensors.
type Linear struct {
	Weight          string // [Outputs, Inputs], or [Inputs, Outputs] if Transposed is set
	Bias            string // empty where it has none
	Inputs, Outputs int
	Transposed      bool
	Routed          bool // it belongs to a routed expert
}
