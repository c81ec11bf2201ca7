package verify

import "testing"

// TestWindow: the bytes of a comparison count until all comparisons have ended that ran at its end.
func TestWindow(t *testing.T) {
	w := newWindow(1)
	enter := func(n int64) (leave func()) {
		leave, err := w.enter(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	room := func(want int64) {
		t.Helper()
		if !w.room.TryAcquire(want) {
			t.Fatalf("no room for %d bytes", want)
		}
		if w.room.TryAcquire(1) {
			t.Errorf("room for more than %d bytes", want)
		}
		w.room.Release(want)
	}
	slow, first := enter(leastWindow/2), enter(leastWindow/4)
	first()
	room(leastWindow / 4)
	second := enter(leastWindow / 4)
	slow()
	room(leastWindow / 4) // bytes of slow count while second runs; bytes of first do not
	second()
	room(leastWindow)
	enter(3 * leastWindow)() // alone, if larger than the window
	room(leastWindow)
}
