package program

import "testing"

// TestResults: Results hold the last choice of each weight, within their memory limit.
func TestResults(t *testing.T) {
	key := func(n byte) resultKey { return resultKey{n} }
	has := func(r *Results, want ...byte) {
		t.Helper()
		for n := range byte(6) {
			kept := false
			for _, w := range want {
				kept = kept || w == n
			}
			if (r.get(key(n)) != nil) != kept {
				t.Errorf("result %d is stored: %v; want %v", n, !kept, want)
			}
		}
	}
	const half = resultBytes/2 + 1
	r := &Results{}
	r.put("a", key(0), make([]byte, half))
	r.put("b", key(1), make([]byte, half)) // no room
	has(r, 0)
	r.put("a", key(2), make([]byte, half)) // replaces the first one
	has(r, 2)
	r.Widen(2 * half)
	r.put("b", key(3), make([]byte, half))
	r.put("c", key(4), make([]byte, 1))
	has(r, 2, 3)
	r.Clear()
	has(r)
	r.put("c", key(5), make([]byte, 1))
	has(r, 5)
	var none *Results
	none.put("a", key(0), []byte{1})
	has(none)
}
