package component

import "math"

// Prediction is the prediction of an unseen kernel: a held-out kernel, or a kernel of the fit, predicted by a fit
// without it.
type Prediction struct {
	Reading
	Predicted Split     // at the clock and temperature of the reading
	Naive     []float64 // watts, by the models of NaiveNames
	// Spans reports whether the kernel is in Quality.Span. AtCap reports whether the card was at its power cap.
	Spans, AtCap bool
}

// Off returns the absolute relative error of the predicted power.
func (p *Prediction) Off() float64 { return math.Abs(p.Predicted.Watts/p.Reading.Watts - 1) }

// Unseen returns the kernels that test the model, in the order of the readings. A kernel that was read several times
// occurs once. Kernels of the fit that alone determine a coefficient are excluded.
func (m *Model) Unseen() []Prediction { return m.unseen }

// Compare predicts a reading that the fit did not use, such as one of another card.
func (m *Model) Compare(r Reading) Prediction { return m.predicted(r, m.own(), m.naive) }

func (m *Model) predicted(r Reading, v variant, naive [][]float64) Prediction {
	return Prediction{Reading: r, Predicted: m.partsOf([]Kernel{r.Kernel}, v), Naive: m.naively(&r.Kernel, naive), Spans: m.spans(&r), AtCap: m.atCap(&r)}
}

// Sensor returns the predicted reading of the memory's power sensor, in watts; 0 if the fit had no such readings.
func (m *Model) Sensor(s Split) float64 {
	if !m.Sensed {
		return 0
	}
	return s.Of(HBM).Watts + m.own().coefficients[len(m.terms)]
}

// predictUnseen computes the predictions of Unseen. d is the fit's design.
func (m *Model) predictUnseen(d *design) (list []Prediction) {
	leverage := d.leverage()
	seen := map[string]bool{}
	for i := range m.Readings {
		r := &m.Readings[i]
		if seen[r.Name] || !r.HeldOut && leverage[r.Name] > mostLeverage {
			continue
		}
		seen[r.Name] = true
		if r.HeldOut {
			list = append(list, m.Compare(*r))
			continue
		}
		without := d.solve(d.y, func(row string) bool { return row == r.Name })
		list = append(list, m.predicted(*r, without, m.fitNaive(r.Name)))
	}
	return list
}

// CapClock holds the errors of the predicted clocks at the power cap, for held-out kernels.
type CapClock struct {
	Kernels int     `json:"kernels"`
	Mean    float64 `json:"mean_error"`
	Worst   float64 `json:"worst_error"`
	// Naive is the mean error of a constant prediction: the mean clock of the fit's kernels at the cap.
	Naive float64 `json:"constant_mean_error"`
}

// capClock compares predicted clocks at the cap with measured ones; nil if there are no such kernels.
func (m *Model) capClock() *CapClock {
	var sum, n float64
	for i := range m.Readings {
		if r := &m.Readings[i]; !r.HeldOut && m.atCap(r) {
			sum, n = sum+r.Clock, n+1
		}
	}
	c := new(CapClock)
	for i := range m.unseen {
		p := &m.unseen[i]
		if !p.HeldOut || !p.AtCap || n == 0 {
			continue
		}
		k := float64(c.Kernels)
		off := math.Abs(m.Clock([]Kernel{p.Reading.Kernel})/p.Reading.Clock - 1)
		c.Kernels++
		c.Mean = (float64(c.Mean*k) + off) / (k + 1)
		c.Worst = max(c.Worst, off)
		c.Naive = (float64(c.Naive*k) + math.Abs(sum/n/p.Reading.Clock-1)) / (k + 1)
	}
	if c.Kernels == 0 {
		return nil
	}
	return c
}
