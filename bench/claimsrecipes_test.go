package bench

// recipesClaims are the claims of docs/recipes.md: loss and saving of lm_head.
func recipesClaims(e *evidence) []claim {
	model := e.llama()
	var all struct{ Models []evaluated }
	read(e.T, "results/llama-17m-lm-head.json", &all)
	var list []claim
	for _, row := range []struct {
		text, name string
		args       []string
	}{
		{"| near-lossless | converted |", "near-lossless", nil},
		{"| near-lossless | unchanged |", "near-lossless-lm_head", []string{"--ignore", "lm_head"}},
		{"| balanced | converted |", "balanced", []string{"--recipe", "balanced"}},
		{"| balanced | unchanged |", "balanced-lm_head", []string{"--recipe", "balanced", "--ignore", "lm_head"}},
	} {
		found := false
		for _, m := range all.Models {
			if m.Model != row.name {
				continue
			}
			found = true
			a := m.Against
			list = append(list, says(row.text+" {} | {} to {} | {} |", signed(a.Difference, 5), signed(a.Interval[0], 5), signed(a.Interval[1], 5),
				e.predicted(model, e.converted(model, row.args...), "prefill")))
		}
		if !found {
			e.Fatalf("no evaluation of %s", row.name)
		}
	}
	return list
}
