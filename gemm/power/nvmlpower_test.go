//go:build cgo && linux && !nogpu

package power

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"pgregory.net/rapid"
)

func TestNVMLSampleMoments(t *testing.T) {
	dev := mockCard()
	card, err := openNVML(mockLibrary(dev), "0")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		ago    time.Duration
		absent bool
		kept   bool
	}{
		"recent":    {ago: 80 * time.Millisecond, kept: true},
		"absent":    {absent: true},
		"years ago": {ago: 3 * 365 * 24 * time.Hour},
		"to come":   {ago: -time.Hour},
	} {
		at := time.Now().Add(-c.ago).Truncate(time.Microsecond)
		dev.GetFieldValuesFunc = func(v []nvml.FieldValue) nvml.Return {
			fill186(&v[0])
			if !c.absent {
				v[0].Timestamp = at.UnixMicro()
			}
			return nvml.SUCCESS
		}
		before := time.Now()
		s, err := card.Sample(Instant, GPU)
		if err != nil || s.Watts != 512.345 {
			t.Fatalf("%s: %v, %v", name, s, err)
		}
		if c.kept != s.At.Equal(at) {
			t.Errorf("%s: at %v, the driver says %v", name, s.At, at)
		}
		if !c.kept && (s.At.Before(before) || s.At.After(time.Now())) {
			t.Errorf("%s: at %v, answered between %v and now", name, s.At, before)
		}
	}
	if s, err := card.Sample(Instant, Module); !errors.Is(err, ErrAbsent) || s != (Sample{}) {
		t.Errorf("module: %v, %v", s, err)
	}
}

// buffered returns a sample of the driver's buffer.
func buffered(micro uint64, mw uint32) (s nvml.Sample) {
	s.TimeStamp = micro
	binary.NativeEndian.PutUint32(s.SampleValue[:], mw)
	return s
}

// TestNVMLSamples: samples after the given time are returned, oldest first, in whatever order the driver lists them.
func TestNVMLSamples(t *testing.T) {
	dev := mockCard()
	card, err := openNVML(mockLibrary(dev), "0")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		stamps := rapid.SliceOfN(rapid.Uint64Range(0, 40), 0, 20).Draw(t, "stamps") // 0: announced and not filled in
		after := rapid.Int64Range(-5, 40).Draw(t, "after")
		heeds := rapid.Bool().Draw(t, "the driver heeds the moment")
		dev.GetSamplesFunc = func(kind nvml.SamplingType, last uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
			if kind != nvml.TOTAL_POWER_SAMPLES || last > 40 {
				t.Fatalf("samples of kind %d after %d", kind, last)
			}
			var list []nvml.Sample
			for _, s := range stamps {
				if !heeds || s > last {
					list = append(list, buffered(s, uint32(s)*1500))
				}
			}
			if len(list) == 0 {
				return 0, nil, nvml.ERROR_NOT_FOUND
			}
			return nvml.VALUE_TYPE_UNSIGNED_INT, list, nvml.SUCCESS
		}
		got, err := card.Samples(time.UnixMicro(after))
		if err != nil {
			t.Fatal(err)
		}
		var want []uint64
		for _, s := range stamps {
			if s > 0 && int64(s) > after {
				want = append(want, s)
			}
		}
		slices.Sort(want)
		if len(got) != len(want) {
			t.Fatalf("%v, want those of %v", got, want)
		}
		for i, s := range got {
			if s.At.UnixMicro() != int64(want[i]) || s.Watts != float64(want[i])*1.5 {
				t.Fatalf("%v, want those of %v", got, want)
			}
		}
	})
}

func TestNVMLSamplesAbsent(t *testing.T) {
	dev := mockCard()
	card, err := openNVML(mockLibrary(dev), "0")
	if err != nil {
		t.Fatal(err)
	}
	answers := func(kind nvml.ValueType, ret nvml.Return) {
		dev.GetSamplesFunc = func(_ nvml.SamplingType, last uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
			if last != 0 {
				t.Errorf("all samples are asked for as those after %d", last)
			}
			return kind, []nvml.Sample{buffered(1, 1)}, ret
		}
	}
	answers(0, nvml.ERROR_NOT_FOUND)
	if got, err := card.Samples(time.Time{}); len(got) != 0 || err != nil {
		t.Errorf("nothing new: %v, %v", got, err)
	}
	answers(0, nvml.ERROR_NOT_SUPPORTED)
	if got, err := card.Samples(time.Time{}); len(got) != 0 || !errors.Is(err, ErrAbsent) {
		t.Errorf("not supported: %v, %v", got, err)
	}
	answers(nvml.VALUE_TYPE_UNSIGNED_SHORT, nvml.SUCCESS)
	if got, err := card.Samples(time.Time{}); len(got) != 0 || !errors.Is(err, ErrAbsent) {
		t.Errorf("of an odd type: %v, %v", got, err)
	}
}

func TestNVMLNumbers(t *testing.T) {
	four, eight := func(v uint32) (b [8]byte) { binary.NativeEndian.PutUint32(b[:], v); return },
		func(v uint64) (b [8]byte) { binary.NativeEndian.PutUint64(b[:], v); return }
	for _, c := range []struct {
		kind nvml.ValueType
		v    [8]byte
		want float64
	}{
		{nvml.VALUE_TYPE_DOUBLE, eight(math.Float64bits(1.5)), 1.5},
		{nvml.VALUE_TYPE_UNSIGNED_INT, four(1<<32 - 1), 1<<32 - 1},
		{nvml.VALUE_TYPE_SIGNED_INT, four(1<<32 - 1), -1},
		{nvml.VALUE_TYPE_UNSIGNED_LONG, eight(1 << 40), 1 << 40},
		{nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, eight(1 << 40), 1 << 40},
		{nvml.VALUE_TYPE_SIGNED_LONG_LONG, eight(1<<64 - 3), -3},
	} {
		if got, err := number(c.kind, c.v); got != c.want || err != nil {
			t.Errorf("type %d: %v, %v, want %v", c.kind, got, err, c.want)
		}
	}
}
