package power

// The metrics by which energy and time are weighed against each other, from ratios after/before.

// EDP is the ratio of energy-delay products.
func EDP(energy, time float64) float64 { return energy * time }

// EDS is the energy-delay sum α·E + β·t with the untouched run as the point of reference, where it
// is 1: α = (k−1)/(k·E₀), β = 1/(k·t₀). k is the factor of time that would just be worth it if all
// the energy were saved.
func EDS(energy, time, k float64) float64 { return ((k-1)*energy + time) / k }

// GainMinusLoss is the share of energy gained less the share of time lost; positive is better.
func GainMinusLoss(energy, time float64) float64 { return (1 - energy) - (time - 1) }
