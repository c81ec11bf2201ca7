package cost

// Estimate is a predicted energy per GEMM.
type Estimate struct {
	// Relative is the energy over that of random normal data of the same scale and dtype.
	Relative float64 `json:"relative_energy"`
	// Interval is what the energy is expected to lie in, with 95 % confidence.
	Interval [2]float64 `json:"interval"`
	// Calibration says where the coefficients come from.
	Calibration string `json:"calibration"`
}
