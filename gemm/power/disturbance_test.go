package power

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// spoilt are the faults of a card that lasts, each with a piece of the reason that an invalid result gives; empty: the figures stay right,
// and a warning has the piece of the second column.
var spoilt = map[SimFaultKind]struct{ reason, warning string }{
	FaultCounterStops:      {"the energy counter does not change", ""},
	FaultCounterBack:       {"the energy counter fell from", ""},
	FaultCounterRepeats:    {"the energy counter fell from", ""},
	FaultCounterAbsurd:     {"the energy counter gives an impossible power", ""},
	FaultPowerAbsurd:       {"", "the power sensor shows 1e+09 W: implausible readings are left out"},
	FaultTemperatureAbsurd: {"", "the temperature shows 3000 °C: implausible readings are left out"},
	FaultClockAbsurd:       {"", "the clock shows 6e+04 MHz: implausible readings are left out"},
	FaultLost:              {"the driver has lost the card", ""},
	FaultHeat:              {"reduced its clock because of its temperature", ""},
	FaultProcess:           {"another process (PID 4194305) started to use the card", ""},
	FaultLimit:             {"the card's power limit changed from 700 to 450 W", ""},
}

// compareUnder compares a load of 600 W with one of 540 W on a card with a fault, for a minute.
func compareUnder(t *testing.T, faults ...SimFault) (*Result, error) {
	t.Helper()
	o := DefaultSim()
	o.Seed, o.DipRate, o.Faults = 3, 0, faults
	s := NewSim(o)
	m, err := NewMeter(s, Options{Clock: s, Time: 60 * time.Second, Precision: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	return m.Compare(context.Background(), Loads{Baseline: s.Load("before", 600, 2e-3), Null: s.Load("copy", 600, 2e-3), Variants: []Load{s.Load("after", 540, 2e-3)}})
}

// rightRatio checks the ratio of compareUnder's loads.
func rightRatio(t *testing.T, r *Result) {
	t.Helper()
	if v := r.Variants[0]; !r.Valid || math.Abs(v.RelativeEnergy-0.9) > 0.006 {
		t.Errorf("valid %v (%v), relative energy %v, want 0.9", r.Valid, r.Invalid, v.RelativeEnergy)
	}
}

// TestFaultsThatStay: a fault that begins in the middle of a comparison and stays is named, and the result is invalid, unless the fault
// concerns no figure.
func TestFaultsThatStay(t *testing.T) {
	for _, kind := range SimFaultKinds {
		t.Run(string(kind), func(t *testing.T) {
			want, known := spoilt[kind]
			if !known {
				t.Fatal("no row")
			}
			r, err := compareUnder(t, SimFault{Kind: kind, From: 40 * time.Second})
			if want.reason == "" {
				if err != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), want.warning) {
					t.Errorf("error %v, warnings %q, want %q", err, r.Warnings, want.warning)
				}
				rightRatio(t, r)
				return
			}
			if err == nil || !strings.Contains(err.Error(), want.reason) || r.Valid || !strings.Contains(strings.Join(r.Invalid, "\n"), want.reason) || r.Stopped != StoppedFailed {
				t.Errorf("error %v, valid %v, reasons %q, stopped %q, want %q", err, r.Valid, r.Invalid, r.Stopped, want.reason)
			}
		})
	}
}

// TestFaultsThatPass: a fault of three seconds is waited out and named, and the figures are right. The exceptions are a card that is lost,
// and a counter that does not move for three seconds.
func TestFaultsThatPass(t *testing.T) {
	for _, kind := range SimFaultKinds {
		t.Run(string(kind), func(t *testing.T) {
			length := 3 * time.Second
			if kind == FaultCounterStops {
				length = 2500 * time.Millisecond
			}
			r, err := compareUnder(t, SimFault{Kind: kind, From: 40 * time.Second, For: length})
			if kind == FaultLost {
				if !errors.Is(err, ErrLost) || r.Valid {
					t.Errorf("error %v, valid %v", err, r.Valid)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Warnings) == 0 {
				t.Error("nothing was noticed")
			}
			if want := spoilt[kind]; want.reason != "" && !strings.Contains(strings.Join(r.Warnings, "\n"), "a reading was disturbed (") {
				t.Errorf("warnings %q", r.Warnings)
			}
			rightRatio(t, r)
		})
	}
}

// TestFaultsFromTheStart: the self-test and the warm-up notice faults, too.
func TestFaultsFromTheStart(t *testing.T) {
	for _, kind := range SimFaultKinds {
		if kind == FaultProcess || kind == FaultLimit { // then the card was so before
			continue
		}
		if want := spoilt[kind]; want.reason != "" {
			r, err := compareUnder(t, SimFault{Kind: kind})
			if err == nil || r.Valid {
				t.Errorf("%s: error %v, valid %v", kind, err, r.Valid)
			}
		}
	}
}
