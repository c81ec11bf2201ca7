package plan

// Trial is a whole model that the search evaluated.
type Trial struct {
	Energy     float64     `json:"energy"`             // predicted energy of all layers, relative to the source
	Predicted  float64     `json:"predicted"`          // divergence predicted from single layers, nats per token
	Divergence float64     `json:"divergence"`         // measured divergence, nats per token
	Loss       float64     `json:"loss"`               // measured rise of the loss, nats per token
	Interval   *[2]float64 `json:"interval,omitempty"` // 95 % interval of Loss; absent with a single sequence
	Kept       bool        `json:"kept,omitempty"`     // within the budget, and the best so far; the last such trial is the result
}

// Search is the record of a search for a budget of loss.
type Search struct {
	Budget float64 `json:"budget"` // largest divergence, nats per token
	Trials []Trial `json:"trials"`
	// Frontier holds the savings at other budgets, estimated from single layers and the trials.
	Frontier []Saving `json:"frontier,omitempty"`
}

// Best returns the trial whose model was chosen; nil if no trial kept the budget.
func (s *Search) Best() (best *Trial) {
	for i := range s.Trials {
		if s.Trials[i].Kept {
			best = &s.Trials[i]
		}
	}
	return best
}

// Saving is a budget with its estimated saving.
type Saving struct {
	MaxLoss float64 `json:"max_loss"` // largest rise of perplexity, as a share
	Energy  float64 `json:"energy"`   // predicted energy of all layers, relative to the source
}
