package plan

import "testing"

// FuzzPartial: a part of a plan is decoded, or is an error.
func FuzzPartial(f *testing.F) {
	f.Add([]byte(`{"plan_part_version": 1, "part": 1, "parts": 2, "whole": [{"pass": "signs", "index": "a", "flip": [4]}], "layers": [{"outlook": {"tensor": "a"}, "steps": [null]}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		if p, err := decodePartial(js); (p == nil) == (err == nil) {
			t.Errorf("%v, %v", p, err)
		}
	})
}
