package profile

import "time"

// Reading is what a sensor said once: the mean power over a stretch of a run. Times count from the
// moment at which the card began the run's work, by the host's clock.
type Reading struct {
	Run    int           `json:"run"`
	Sensor string        `json:"sensor"` // Counter, Instant, Average or Buffer
	At     time.Duration `json:"-"`      // the moment that the reading is for
	// Since is when the stretch began, where that is known: between two steps of the energy counter. For
	// other sensors the stretch is the sensor's window before At; see [Sensor].
	Since time.Duration `json:"-"`
	Watts float64       `json:"watts"`
}

// The sensors.
const (
	Counter = "energy counter"
	Instant = "instant power"
	Average = "average power"
	Buffer  = "driver's buffer"
)

// Sensor is what a sensor was found to do: a reading at t is the mean from t−Delay−Window to t−Delay of what
// follows power with a lag. The stretches of the energy counter are known but for the delay; its window is the
// median one.
type Sensor struct {
	Name     string        `json:"name"`
	Readings int           `json:"readings"`
	Window   time.Duration `json:"-"`
	Delay    time.Duration `json:"-"`
	// Lag: what it is the mean of follows a jump of power as 1−exp(−t/Lag). One filter lies before all sensors.
	Lag time.Duration `json:"-"`
	// Gain is what it reads of what the energy counter, or else the first sensor, says.
	Gain float64 `json:"gain"`
	// Error is the standard deviation of one reading about the curve, in watts.
	Error float64 `json:"error_watts"`
	// Used is false where its readings say less than others do, or contradict them; Why says so.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
}

// Curve is power against time, in cells of equal length.
type Curve struct {
	Start time.Duration `json:"-"` // of the first cell; before 0 the card was idle
	Step  time.Duration `json:"-"` // length of a cell
	Watts []float64     `json:"watts"`
	// Low and High are the ends of each cell's 95 % interval, by bootstrap over runs: with the sensors' responses and
	// the law of pace as they were found.
	Low  []float64 `json:"low"`
	High []float64 `json:"high"`
	// Resolution of each cell: what happens within it cannot be told apart, but for what goes with the pace of the
	// executions. It is the width, at half their height, of the weights with which the cell's watts are a
	// mean of power over time.
	Resolution []time.Duration `json:"-"`
	// Law by which power follows pace, and so in how much more detail than Resolution; nil where no pace is known.
	Law *Law `json:"law,omitempty"`

	resamples [][]float64 // running integrals of the bootstrap's curves
	wide      float64     // half a 95 % interval, in their standard deviations
}
