package decoder

import "fmt"

// Check returns an error for sequences that the model cannot predict. There must be at least one sequence. Each needs at least
// two tokens, at most as many as the model has positions, and only tokens of the vocabulary.
func (d *Decoder) Check(tokens [][]int32) error {
	if len(tokens) == 0 {
		return fmt.Errorf("there are no sequences of tokens: give at least one")
	}
	for i, sequence := range tokens {
		switch {
		case len(sequence) < 2:
			noun := map[bool]string{false: "tokens", true: "token"}[len(sequence) == 1]
			return fmt.Errorf("sequence %d has %d %s: give at least two, one to predict from and one to predict", i, len(sequence), noun)
		case len(sequence) > d.Limit:
			return fmt.Errorf("sequence %d has %d tokens, but the model takes at most %d: cut it into shorter ones", i, len(sequence), d.Limit)
		}
		for at, token := range sequence {
			if token < 0 || int(token) >= d.Vocab {
				return fmt.Errorf("sequence %d, position %d: token %d is outside the vocabulary of %d: use tokens of this model's tokenizer", i, at, token, d.Vocab)
			}
		}
	}
	return nil
}
