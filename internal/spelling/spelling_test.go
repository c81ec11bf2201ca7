package spelling

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"convert", "convrt", 1}, {"plan", "lpan", 2}, {"kitten", "sitting", 3}} {
		if have := distance(c.a, c.b); have != c.want {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, have, c.want)
		}
	}
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) || (distance(a, b) == 0) != (a == b) {
			t.Fatal("distance is not a metric")
		}
	})
}
