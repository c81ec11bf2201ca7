package profile

import "time"

// Reading is what a sensor said once: the mean power over a stretch of a run. Times count from the
// moment at which the card began the run's work, by the host's clock.
type Reading struct {
	Run    int           `json:"run"`
	Sensor string        `json:"sensor"` // Counter, Instant, Average or Buffer
	At     time.Duration `json:"at"`     // the moment that the reading is for
	// Since is when the stretch began, where that is known: between two steps of the energy counter. For
	// other sensors the stretch is the sensor's window before At; see [Sensor].
	Since time.Duration `json:"since,omitempty"`
	Watts float64       `json:"watts"`
}

// The sensors.
const (
	Counter = "energy counter"
	Instant = "instant power"
	Average = "average power"
	Buffer  = "driver's buffer"
)

// Sensor is what a sensor was found to do: a reading at t is the mean from t−Delay−Window to t−Delay. The
// stretches of the energy counter are known but for the delay; its window is the median one.
type Sensor struct {
	Name     string        `json:"name"`
	Readings int           `json:"readings"`
	Window   time.Duration `json:"window"`
	Delay    time.Duration `json:"delay"`
	// Gain is what it reads of what the energy counter, or else the first sensor, says. Readings are divided
	// by it.
	Gain float64 `json:"gain"`
	// Error is the standard deviation of one reading about the curve, in watts.
	Error float64 `json:"error_watts"`
	// Used is false where its readings say less than others do, or contradict them; Why says so.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
}

// Curve is power against time, in cells of equal length.
type Curve struct {
	Start time.Duration `json:"start"` // of the first cell; before 0 the card was idle
	Step  time.Duration `json:"step"`  // length of a cell
	Watts []float64     `json:"watts"`
	// Low and High are the ends of each cell's 95 % interval, by bootstrap over runs.
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
	// Resolution of each cell: what happens within it cannot be told apart. It is the width, at half their
	// height, of the weights with which the cell's watts are a mean of power over time.
	Resolution []time.Duration `json:"resolution"`

	resamples [][]float64 // running integrals of the bootstrap's curves
	wide      float64     // half a 95 % interval, in their standard deviations
}
