// Package evaluate computes the accuracy of models on tokens: loss and perplexity, the rise of the loss
// from one model to another, and the output SNR of single layers.
//
//	file, err := tokens.Open("MODEL/tokens.safetensors")
//	set, err := file.Set(tokens.Evaluation)
//	s, err := evaluate.New(model, nil, set, 0)
//	c, err := s.Compare(ctx, model, converted, nil)
//	fmt.Println(c.Before, c.After, c.Difference, c.Low, c.High)
//
// Losses are in nats per predicted token; all tokens but the first of each sequence are predicted. Comparisons are
// paired: both models get the same tokens. Intervals are 95 % intervals of the mean over sequences.
package evaluate
