package power

// Metrics that combine energy and time, from ratios after/before.

// EDP returns the ratio of energy-delay products.
func EDP(energy, time float64) float64 { return energy * time }

// EDS returns the energy-delay sum α·E + β·t, with α = (k−1)/(k·E₀) and β = 1/(k·t₀). It is 1 for the baseline (E₀, t₀).
// With all energy saved, it is also 1 if the work takes k times as long.
func EDS(energy, time, k float64) float64 { return ((k-1)*energy + time) / k }

// GainMinusLoss returns the share of energy saved minus the share of time lost; positive is better.
func GainMinusLoss(energy, time float64) float64 { return (1 - energy) - (time - 1) }
