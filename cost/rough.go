package cost

import "github.com/lowtoggle/lowtoggle/weights"

// Rough is the first predictor of a GEMM's energy, to be believed for the order of variants
// rather than for their values. Its figures are read off a few dozen measurements of BF16 GEMMs
// on one H200: linear pieces where the hardware is not linear, and activity of the weights alone
// where what counts is products. The zero value is ready for use.
//
// Prefill: the power that depends on the weights is a sum of features with non-negative
// coefficients, fitted by least squares. It is 1 for random data and 0 for zeros. Energy follows
// it along a line with one bend, at the card's power cap.
//
// Decode: the bits that toggle in memory order, each alike, since weights pass once from memory
// to the cores.
//
// Other formats use BF16's coefficients on their own fields, each relative to random data.
type Rough struct{}

// Estimate is a predicted energy per GEMM.
type Estimate struct {
	// Relative is the energy over that of random normal data of the same scale and dtype.
	Relative float64 `json:"relative_energy"`
	// Interval is what the energy is expected to lie in. Its half width is twice the root mean
	// square of the errors that the fit made for variants it had not seen.
	Interval [2]float64 `json:"interval"`
	// Calibration says where the coefficients come from.
	Calibration string `json:"calibration"`
}

// The label on every rough estimate.
const (
	roughCalibration      = "rough, from BF16 on one H200"
	roughOtherCalibration = roughCalibration + ", applied to "
)

// prefillModel is energy as a function of features in one role.
type prefillModel struct {
	floor        float64  // relative energy of zeros
	coefficients features // of power: all but zeroBorders' sum to 1
	halfWidth    float64  // of the interval, in relative energy
}

// prefill holds the fits. Floors are measured (8192³). Coefficients are those of non-negative
// least squares on eleven patterns at 8192³ and on five roundings and one pruning of a trained
// model's layers, all synthesised; half widths are twice the root mean square error of predicting
// each reading from the others. TestRoughIsItsFit repeats all of it.
var prefill = [...]prefillModel{
	Stationary: {floor: 0.66, halfWidth: 0.035, coefficients: features{
		signToggles: 0.048, changes: 0.104, mantissaTogglesK: 0.191, nonzeros: 0.469,
		mantissaOnes: 0.188, zeroBorders: 0.573,
	}},
	Streaming: {floor: 0.60, halfWidth: 0.046, coefficients: features{
		signToggles: 0.158, changes: 0.295, mantissaToggles: 0.371, nonzeros: 0.176,
		zeroBorders: 0.817,
	}},
}

// Large BF16 GEMMs on random data are held at the power cap by a clock of about 1.48 GHz, and as
// activity falls the clock rises towards the 1.66 GHz it has just below the cap. Until then
// energy falls only with time, in the ratio of clocks; a line through activity is steeper below
// that energy by capBend.
const (
	capEnergy = 1.48 / 1.66
	capBend   = 2.5
)

// At M = 16: the relative energy of zeros, and half the width of the interval, which covers the
// two readings there are of rounded weights.
const (
	decodeFloor     = 0.855
	decodeHalfWidth = 0.02
)

// Energy predicts the relative energy of GEMMs whose weights are a tensor with the activity a, as
// Measure or a Counter found it. outAxis is the axis of the stored matrix along which the outputs
// lie: 0 for Linear, 1 for transposed storage (Conv1D); decode, which goes by memory order, does
// not look at it. An empty tensor costs what random data costs.
func (Rough) Energy(a Activity, outAxis int, role Role, w Workload) Estimate {
	e := Estimate{Relative: 1, Calibration: roughCalibration}
	if a.DType != weights.BF16 {
		e.Calibration = roughOtherCalibration + a.DType.String()
	}
	m := prefill[role]
	if a.Elements > 0 {
		e.Relative = w.Prefill*m.energy(m.power(a.features(outAxis))) +
			w.Decode*(decodeFloor+(1-decodeFloor)*a.memoryToggles())
	}
	half := w.Prefill*m.halfWidth + w.Decode*decodeHalfWidth
	e.Interval = [2]float64{e.Relative - half, e.Relative + half}
	return e
}

// Ceiling is the relative energy of weights that are all zero: no change of weights saves more.
func (Rough) Ceiling(role Role, w Workload) float64 {
	return w.Prefill*prefill[role].floor + w.Decode*decodeFloor
}

// power is the weights' part of the power, 1 for random data and 0 for zeros.
func (m prefillModel) power(x features) float64 {
	p := 0.0
	for i, c := range m.coefficients {
		p += c * x[i]
	}
	return p
}

// energy is the relative energy at a given power: a line from the floor that bends at the cap.
func (m prefillModel) energy(power float64) float64 {
	if knee := m.knee(); power > knee {
		return capEnergy + (power-knee)*m.slope()/capBend
	}
	return m.floor + power*m.slope()
}

// slope is that of energy over power below the cap.
func (m prefillModel) slope() float64 { return capEnergy - m.floor + capBend*(1-capEnergy) }

// knee is the power at which the cap is reached.
func (m prefillModel) knee() float64 { return (capEnergy - m.floor) / m.slope() }
