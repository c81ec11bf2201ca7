package pass

import (
	"context"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/transform/program"
)

// KeepSample is Keep for large layers: of a layer with at least Context.SampleFrom weights it loads only the rows of
// Sample. Until the returned function frees them, programs of the layer compute these rows only.
func (l *Layer) KeepSample(ctx context.Context) (free func(), err error) {
	if n := l.Rows() * l.Cols(); l.SampleFrom > 0 && n >= l.SampleFrom && l.OutAxis() == 0 && l.Codes() == nil {
		if ranges := cost.SampleRows(l.Rows(), l.Cols(), 1); len(ranges) > 1 {
			l.bands = ranges
		}
	}
	return l.Keep(ctx)
}

// Bands returns the rows that KeepSample has loaded; nil: all rows.
func (l *Layer) Bands() program.Bands { return l.bands }
