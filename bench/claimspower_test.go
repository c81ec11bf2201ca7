package bench

import (
	"fmt"
	"math"
	"slices"

	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// powerClaims are the claims of docs/power-h200.md about the recorded profiles of 8192³ and 2048³, two of each.
func powerClaims(e *evidence) []claim {
	products := profiledProducts(e.T)
	large, small := products[0].runs, products[1].runs
	all := append(slices.Clone(large[:]), small[:]...)
	sensor := func(r *profile.Profile) *stitch.Sensor {
		i := slices.IndexFunc(r.Sensors, func(s stitch.Sensor) bool { return s.Name == "driver's buffer" })
		return &r.Sensors[i]
	}
	span := func(runs []*profile.Profile, decimals int, of func(r *profile.Profile) float64) string {
		low, high := math.Inf(1), math.Inf(-1)
		for _, r := range runs {
			low, high = min(low, of(r)), max(high, of(r))
		}
		one, other := fmt.Sprintf("%.*f", decimals, low), fmt.Sprintf("%.*f", decimals, high)
		if one == other {
			return one
		}
		return one + " to " + other
	}
	lag := func(r *profile.Profile) float64 { return 1e3 * sensor(r).TimeConstant.Seconds() }
	start := func(runs []*profile.Profile) string {
		sum := 0.0
		for _, r := range runs {
			watts, _, _ := r.Trace.Mean(10*ms, 30*ms)
			sum += watts / float64(len(runs))
		}
		return fmt.Sprintf("%.0f W", 10*math.Round(sum/10))
	}
	noise := func(r *profile.Profile) float64 { return sensor(r).Error }
	order := func(r *profile.Profile) float64 { return r.Trace.Law.Exponent }
	bend := func(r *profile.Profile) float64 { return r.Trace.Law.Curvature }
	return []claim{
		says("with {} runs, {} of them golden", span(all, 0, func(r *profile.Profile) float64 { return float64(r.Taken) }),
			span(all, 0, func(r *profile.Profile) float64 { return float64(r.Golden) })),
		says("draws some {} (8192³) or {} (2048³)", start(large[:]), start(small[:])),
		says("with τ = {} ms on one card and {} and {} ms on the other", span(large[:], 1, lag), fmt.Sprintf("%.1f", lag(small[0])), fmt.Sprintf("%.1f", lag(small[1]))),
		says("its window is {} ms.", span(all, 0, func(r *profile.Profile) float64 { return 1e3 * sensor(r).Window.Seconds() })),
		says("The noise was {} W for 2048³, and {} W for 8192³", span(small[:], 0, noise), span(large[:], 0, noise)),
		says("differ by {} % in scale", span(all, 2, func(r *profile.Profile) float64 { return 100 * (sensor(r).Gain - 1) })),
		says("the exponent is {} (8192³) or {} (2048³)", span(large[:], 1, order), span(small[:], 1, order)),
		says("between some {} and {} MHz", fmt.Sprintf("%.0f", 100*math.Round(slowest(all)/100)), fmt.Sprintf("%.0f", e.calibration().Facts.Settings.HighestClock)),
		says("a quadratic term of {} (8192³) or {} (2048³). This law", span(large[:], 2, bend), span(small[:], 2, bend)),
	}
}

// slowest returns the lowest clock during the work of all profiles, in MHz.
func slowest(all []*profile.Profile) float64 {
	least := math.Inf(1)
	for _, r := range all {
		for _, s := range r.States {
			if s.SMClock != nil {
				least = min(least, *s.SMClock)
			}
		}
	}
	return least
}
