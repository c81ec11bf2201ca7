package plan

// Trial is a whole model that was run.
type Trial struct {
	Energy     float64     `json:"energy"`             // of all layers, relative, predicted
	Predicted  float64     `json:"predicted"`          // divergence in nats, from single layers
	Divergence float64     `json:"divergence"`         // measured
	Loss       float64     `json:"loss"`               // measured rise, in nats
	Interval   *[2]float64 `json:"interval,omitempty"` // of Loss, 95 %; absent where the tokens give none
	Kept       bool        `json:"kept,omitempty"`     // within the budget, and best so far
}

// Search is the record of a search for a budget of loss.
type Search struct {
	Budget float64 `json:"budget"` // of divergence, nats
	Trials []Trial `json:"trials"`
	// Frontier holds the savings of other budgets, estimated from single layers and the trials.
	Frontier []Saving `json:"frontier,omitempty"`
}

// Best is the trial whose model was taken; nil where none kept the budget.
func (s *Search) Best() (best *Trial) {
	for i := range s.Trials {
		if s.Trials[i].Kept {
			best = &s.Trials[i]
		}
	}
	return best
}

// Saving is a budget and its estimated saving.
type Saving struct {
	MaxLoss float64 `json:"max_loss"` // share by which perplexity may rise
	Energy  float64 `json:"energy"`   // of all layers, relative, predicted
}
