package cuda

import "time"

const (
	// replayTime is the least duration of a replay. It is much longer than the gap between two launches of a graph,
	// which is a few microseconds.
	replayTime  = 5 * time.Millisecond
	maxLaunches = 4096
	overL2      = 4
)

// most returns the largest number of passes in a replay.
func (b *Batch) most() int { return max(1, maxLaunches/len(b.work)) }

// coldCopies returns the number of copies of all weights that together are several times as large as the L2 cache.
// bytes is [Options].ColdBytes.
func (b *Batch) coldCopies(bytes int) int {
	weights := 0
	for _, l := range b.layers {
		weights += l.W.Stored() * b.stack
	}
	if bytes > 0 {
		weights = min(weights, bytes)
	}
	return min(b.most(), overL2*int(b.device.info.L2)/weights+1)
}

// record captures a replay and measures its duration. If repeat is 0, it doubles the number of passes until a replay
// takes replayTime or the limit of launches is reached.
func (b *Batch) record(repeat int) error {
	for b.passes = b.copies * max(1, repeat); ; b.passes *= 2 {
		if err := first(b.replays, b.time); err != nil {
			return err
		}
		if repeat > 0 || b.replay >= replayTime || 2*b.passes > b.most() {
			return nil
		}
		if err := b.device.destroyGraph(&b.exec); err != nil {
			return err
		}
	}
}

// replays captures the passes of a replay as a graph.
func (b *Batch) replays() error {
	return b.capture(func() error {
		for i := range b.passes {
			if err := b.pass(i % b.copies); err != nil {
				return err
			}
		}
		return nil
	})
}
