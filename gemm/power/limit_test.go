package power

import "testing"

func TestLimit(t *testing.T) {
	of := func(v float64) *float64 { return &v }
	card := &Info{PowerLimit: of(700), MaxSMClock: of(1980)}
	for _, c := range []struct {
		capped          bool
		watts, reported float64
		effective       float64 // 0: unknown
		want            Limit
	}{
		{capped: true, watts: 691, reported: 1444, effective: 1440, want: AveragePower},
		{capped: true, watts: 545, reported: 1667, want: DriverCap},
		{capped: true, watts: 400, reported: 1980, effective: 1722, want: DriverCap},
		{watts: 332, reported: 1980, effective: 1722, want: StretchedClock},
		{watts: 332, reported: 1980, effective: 1975},
		{watts: 600, reported: 1755, effective: 1750, want: ReportedClock},
		{watts: 500, reported: 1980},
	} {
		s := Summary{Capped: &c.capped, Watts: c.watts, SMClock: &c.reported}
		if c.effective > 0 {
			s.EffectiveClock = &c.effective
		}
		if got := s.limit(card); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if got := s.limit(&Info{}); got != "" {
			t.Errorf("%+v: %q on a card whose limit is not known", c, got)
		}
	}
	words := map[string]bool{}
	for _, l := range []Limit{"", AveragePower, DriverCap, StretchedClock, ReportedClock} {
		words[l.Describe()] = true
	}
	if len(words) != 5 {
		t.Errorf("descriptions: %v", words)
	}
}
