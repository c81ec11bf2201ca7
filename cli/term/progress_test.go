package term

import (
	"io"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// TestProgress: a stage's bar ends when the next stage begins, even if the stage is not complete. A repeated stage
// begins a new bar. Each card has its own bar.
func TestProgress(t *testing.T) {
	p := draw(io.Discard)
	defer p.End()
	event, other := p.On("card 0"), p.On("card 1")
	event(progress.Event{Stage: "prepare", Done: 3, Total: 10})
	event(progress.Event{Stage: "prepare", Done: 2, Total: 10}) // a late event from another goroutine
	prepared := p.lines["card 0"].bar
	if n := prepared.Current(); n != 3 {
		t.Errorf("at %d of 10, want 3", n)
	}
	other(progress.Event{Stage: "warm-up"})
	warm := p.lines["card 1"].bar
	event(progress.Event{Stage: "measure", Done: 9, Total: 10})
	measured := p.lines["card 0"].bar
	event(progress.Event{Stage: "prepare", Done: 1, Total: 10})
	if again := p.lines["card 0"].bar; !prepared.Aborted() || !measured.Aborted() || again.Aborted() || again.Current() != 1 {
		t.Error("a finished stage is still drawn, or the current stage is not")
	}
	if warm.Aborted() || p.lines["card 1"].bar != warm {
		t.Error("one card's stage ended another's")
	}
}
