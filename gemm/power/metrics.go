package power

// These metrics combine the ratios of energy and time after/before.

// EDP returns the ratio of energy-delay products.
func EDP(energy, time float64) float64 { return energy * time }

// EDS returns the energy-delay sum α·E + β·t, with α = (k−1)/(k·E₀) and β = 1/(k·t₀). It is 1 for the baseline (E₀,
// t₀). It is also 1 if the work takes k times as long and no energy.
func EDS(energy, time, k float64) float64 { return ((k-1)*energy + time) / k }

// GainMinusLoss returns the relative energy saving minus the relative loss of time. Positive values are better.
func GainMinusLoss(energy, time float64) float64 { return (1 - energy) - (time - 1) }
