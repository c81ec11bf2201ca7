package component

import (
	"slices"

	"gonum.org/v1/gonum/stat"
)

// usualTemperature is the temperature in °C at which the leakage term is 0.
const usualTemperature = 50

// warmth is the card's temperature in °C under steady work: cold + perWatt·watts.
type warmth struct{ cold, perWatt float64 }

// warming fits the temperature of the fit's readings to their power. Without temperatures it returns the usual one.
func (m *Model) warming() warmth {
	var watts, celsius []float64
	for _, r := range m.Readings {
		if !r.HeldOut && r.Temperature > 0 {
			watts, celsius = append(watts, r.Watts), append(celsius, r.Temperature)
		}
	}
	if len(watts) < fewReadings {
		return warmth{cold: usualTemperature}
	}
	cold, perWatt := stat.LinearRegression(watts, celsius, nil, false)
	return warmth{cold, max(0, perWatt)}
}

// warmed returns kernels that run one after the other, with the temperature that their power causes. Known
// temperatures do not change.
func (m *Model) warmed(kernels []Kernel, v variant) []Kernel {
	leak := slices.IndexFunc(m.terms, func(t term) bool { return t.name == leakTerm })
	if leak < 0 || kernels[0].Temperature > 0 {
		return kernels
	}
	warm := slices.Clone(kernels)
	set := func(celsius float64) {
		for i := range warm {
			warm[i].Temperature = celsius
		}
	}
	set(usualTemperature)
	perDegree := v.coefficients[leak]
	usual := m.joulesPerSecond(warm, v, everyTerm)
	// watts = usual + perDegree·(celsius − 50), and celsius = cold + perWatt·watts.
	watts := (usual + float64(perDegree*(m.warmth.cold-usualTemperature))) / max(0.1, 1-float64(perDegree*m.warmth.perWatt))
	set(m.warmth.cold + float64(m.warmth.perWatt*watts))
	return warm
}

func everyTerm(*term) bool { return true }
