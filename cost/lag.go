package cost

import (
	"context"
	"math/bits"
)

// Lag is a distance between places of an axis of weights: the bits at place i toggle against the bits at place
// i+Distance.
type Lag struct {
	Distance int
	// Weights are the shares of the energy of these toggles, by i modulo len(Weights). The length is the card's run
	// of streaming rows, and is equal for all lags.
	Weights []float64
}

// Lags returns the lags of an axis of stored weights (0: rows, 1: columns) for a role and a workload. At these
// distances, different neighbours cost energy. The result is nil if the axis has no lags. Only w's type and shape are
// used, not its bands. A prediction determines whether outputs stream, once for each type, shape and role, because
// this depends on the type and on the number of outputs too.
func (c *Calibration) Lags(ctx context.Context, w Weights, axis int, role Role, l Workload) ([]Lag, error) {
	streams := false
	if axis == w.OutAxis && l.Prefill > 0 {
		var err error
		if streams, err = c.streams(ctx, w, role); err != nil {
			return nil, err
		}
	}
	return c.Facts.Lags(w, axis, streams, l), nil
}

// Lags returns the lags of [Calibration.Lags]. streams says whether w's outputs stream. Streaming outputs follow one
// another in lanes. Elements in memory follow elements that are a fixed number of bytes before them. A stationary
// operand has no lags along its outputs.
func (f *Facts) Lags(w Weights, axis int, streams bool, l Workload) (list []Lag) {
	format, ok := w.DType.Format()
	if !ok {
		return nil
	}
	if axis == w.OutAxis && streams && l.Prefill > 0 {
		list = f.Datapath.lags(l.Prefill * f.LagShares.Streaming)
	}
	if axis != 1 {
		return list
	}
	along := func(bytes int, share float64) {
		if distance := bytes / (format.Bits / 8); distance > 0 && share > 0 {
			weights := make([]float64, f.Datapath.StreamingRun)
			for i := range weights {
				weights[i] = share
			}
			list = append(list, Lag{distance, weights})
		}
	}
	along(f.Memory.Line, l.Prefill*f.LagShares.Line)
	along(f.Memory.Element, l.Decode*f.LagShares.Element)
	along(f.Memory.Sector, l.Decode*f.LagShares.Sector)
	return list
}

// lags returns the lags of streaming rows. Over a run, their mean weight is share.
func (d *Datapath) lags(share float64) (list []Lag) {
	at := map[int]int{} // distance → index in list
	for place := range d.StreamingRun {
		distance := d.stride(place)
		i, ok := at[distance]
		if !ok {
			i = len(list)
			at[distance] = i
			list = append(list, Lag{distance, make([]float64, d.StreamingRun)})
		}
		list[i].Weights[place] = d.placeWeight(place) * share
	}
	return list
}

// stride returns the distance, in rows, of the step from a place of a run.
func (d *Datapath) stride(place int) int {
	if place < d.StreamingRun-1 {
		return 1
	}
	return (d.StreamingLanes-1)*d.StreamingRun + 1
}

// placeWeight returns the weight of the step from a place of a run. The mean is 1.
func (d *Datapath) placeWeight(place int) float64 {
	for _, s := range d.StreamingSteps {
		for _, p := range s.Places {
			if p == place {
				return s.Share * float64(d.StreamingRun) / float64(len(s.Places))
			}
		}
	}
	return 0
}

// streamsKey identifies weights with equal streaming of outputs.
type streamsKey struct {
	w    [4]int // type, rows, columns and the axis of outputs
	role Role
}

// streams reports whether w's outputs follow one another in the multipliers. Equal outputs in each run then save
// energy in a prediction.
func (c *Calibration) streams(ctx context.Context, w Weights, role Role) (bool, error) {
	key := streamsKey{[4]int{int(w.DType), w.Rows, w.Cols, w.OutAxis}, role}
	if v, ok := c.streaming.Load(key); ok {
		return v.(bool), nil
	}
	different, err := c.energyOfRuns(ctx, w, role, 1)
	if err != nil {
		return false, err
	}
	alike, err := c.energyOfRuns(ctx, w, role, c.Facts.Datapath.StreamingRun)
	if err != nil {
		return false, err
	}
	const least = 0.01 // above the sampling error for a stationary operand
	c.streaming.Store(key, different-alike > least)
	return different-alike > least, nil
}

// energyOfRuns predicts random weights of w's type and shape with runs of alike equal outputs.
func (c *Calibration) energyOfRuns(ctx context.Context, w Weights, role Role, alike int) (float64, error) {
	const band = 64
	f, ok := w.DType.Format()
	if !ok {
		return 0, c.unknown(Product{})
	}
	rows := min(band, w.Rows)
	data := make([]byte, rows*w.Cols*f.Bits/8)
	for i := range rows * w.Cols {
		n, k := i/w.Cols, i%w.Cols
		if w.OutAxis == 0 {
			n -= n % alike
		} else {
			k -= k % alike
		}
		f.SetElem(data, i, f.FromValue(16*bell(uint64(n*w.Cols+k))))
	}
	w.Bands, w.Scale = []Band{{Data: data}}, 0
	e, err := c.Energy(ctx, w, role, Workload{Prefill: 1})
	return e.Relative, err
}

// bell returns a pseudo-random number for i, from a bell-shaped distribution of variance 1/3.
func bell(i uint64) float32 {
	i = (i + 1) * 0x9E3779B97F4A7C15
	i = (i ^ bits.RotateLeft64(i, 29)) * 0xBF58476D1CE4E5B9
	i ^= i >> 32
	var sum float32
	for range 4 {
		sum += float32(float32(int16(i)) / (1 << 16))
		i >>= 16
	}
	return sum
}
