package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Estimate is an estimate of a quantity with its standard error, which must be positive.
type Estimate struct{ Value, Error float64 }

// RandomEffects describes a quantity that differs between members of a population, such as cards of one kind. Each
// member's quantity was estimated with its own error.
type RandomEffects struct {
	Mean    float64 // of the population
	Error   float64 // of Mean
	Between float64 // standard deviation between members
	// Interval is the 95 % interval of Mean; nil with fewer than two members.
	Interval []float64
	// Next is the 95 % prediction interval of the quantity of a further member; nil with fewer than two members.
	Next []float64
}

// Combine returns the random effects of one estimate for each member.
//
// Between is Paule's and Mandel's estimate ([Between]). Interval is the interval of Hartung and Knapp (Statistics in
// Medicine 20, 2001, 3875), with a factor of at least 1, as Röver, Knapp and Friede advise for few members (BMC
// Medical Research Methodology 15, 2015, 99). Without differences between members, Mean is the mean of a fixed
// effect, weighted by 1/Error².
//
// Next is Student's prediction interval from the scatter of the estimates, errors included. The usual interval, from
// Between alone (Higgins, Thompson and Spiegelhalter, Journal of the Royal Statistical Society A 172, 2009, 137),
// contains only 85 to 91 % of further members if Between is about as large as the errors, because Between is then
// often estimated as 0.
func Combine(members []Estimate) RandomEffects {
	r := RandomEffects{Between: Between(members)}
	n := float64(len(members))
	var weights float64
	for _, m := range members {
		w := 1 / (m.Error*m.Error + r.Between*r.Between)
		r.Mean += w * m.Value
		weights += w
	}
	r.Mean /= weights
	if n < 2 {
		r.Error = members[0].Error
		return r
	}
	r.Error = math.Sqrt(max(1, scatter(members, r.Between*r.Between)/(n-1)) / weights)
	around := func(freedom, deviation float64) []float64 {
		half := Student(freedom, confidence) * deviation
		return []float64{r.Mean - half, r.Mean + half}
	}
	r.Interval = around(n-1, r.Error)
	r.Next = around(n-1, math.Sqrt(variance(members)+r.Error*r.Error))
	return r
}

const confidence = 0.95

// Between returns the standard deviation between members by the method of Paule and Mandel (Journal of Research of
// the National Bureau of Standards 87, 1982, 377). It is the smallest deviation that explains, together with the
// errors, the scatter of the members about their weighted mean. Several groups have one common deviation, and their
// means may differ.
func Between(groups ...[]Estimate) float64 {
	var freedom, squares float64
	for _, members := range groups {
		if n := float64(len(members) - 1); n > 0 {
			freedom, squares = freedom+n, squares+n*variance(members)
		}
	}
	excess := func(between float64) float64 {
		sum := -freedom
		for _, members := range groups {
			sum += scatter(members, between)
		}
		return sum
	}
	if freedom == 0 || excess(0) <= 0 {
		return 0
	}
	low, high := 0.0, squares/freedom // the excess falls; at squares/freedom it is at most 0
	for range 50 {
		if middle := (low + high) / 2; excess(middle) > 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(high)
}

// variance returns the variance of the members' values.
func variance(members []Estimate) float64 {
	values := make([]float64, len(members))
	for i, m := range members {
		values[i] = m.Value
	}
	return stat.Variance(values, nil)
}

// scatter returns the sum of the members' squared deviations from their weighted mean. Each is divided by the
// member's variance plus the variance between members.
func scatter(members []Estimate, between float64) (sum float64) {
	var mean, weights float64
	for _, m := range members {
		w := 1 / (m.Error*m.Error + between)
		mean, weights = mean+w*m.Value, weights+w
	}
	mean /= weights
	for _, m := range members {
		sum += (m.Value - mean) * (m.Value - mean) / (m.Error*m.Error + between)
	}
	return sum
}
