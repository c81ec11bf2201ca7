//go:build cgo && linux && !nogpu

package power

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func (c *nvmlCard) Power(sensor Sensor, scope Scope) (float64, error) {
	s, err := c.Sample(sensor, scope)
	return s.Watts, err
}

func (c *nvmlCard) Sample(sensor Sensor, scope Scope) (Sample, error) {
	field := uint32(nvml.FI_DEV_POWER_INSTANT)
	if sensor == Average {
		field = nvml.FI_DEV_POWER_AVERAGE
	}
	scopes := [...]uint32{GPU: nvml.POWER_SCOPE_GPU, Module: nvml.POWER_SCOPE_MODULE, Memory: nvml.POWER_SCOPE_MEMORY}
	values := []nvml.FieldValue{{FieldId: field, ScopeId: scopes[scope]}}
	ret := c.dev.GetFieldValues(values)
	now := time.Now()
	if ret == nvml.SUCCESS { // status of the call; each value has its own status
		ret = nvml.Return(values[0].NvmlReturn)
	}
	if ret != nvml.SUCCESS {
		return Sample{}, queryError("power", ret)
	}
	mw, err := number(nvml.ValueType(values[0].ValueType), values[0].Value)
	if err != nil {
		return Sample{}, err
	}
	return Sample{stamped(values[0].Timestamp, now), mw / 1000}, nil
}

// stamped converts a driver's time stamp in microseconds. If the time stamp is absent or implausible, stamped returns
// now, the time of the query.
func stamped(micro int64, now time.Time) time.Time {
	const old, ahead = 10 * time.Second, time.Second
	if at := time.UnixMicro(micro); at.After(now.Add(-old)) && at.Before(now.Add(ahead)) {
		return at
	}
	return now
}

func (c *nvmlCard) Samples(after time.Time) ([]Sample, error) {
	last := max(0, after.UnixMicro())
	kind, found, ret := c.dev.GetSamples(nvml.TOTAL_POWER_SAMPLES, uint64(last))
	if ret == nvml.ERROR_NOT_FOUND { // no new samples
		return nil, nil
	}
	if err := queryError("samples of power", ret); err != nil {
		return nil, err
	}
	var samples []Sample
	for _, f := range found {
		// The driver announces more samples than it fills in. The remaining samples are 0.
		if f.TimeStamp > math.MaxInt64 || int64(f.TimeStamp) <= last {
			continue
		}
		mw, err := number(kind, f.SampleValue)
		if err != nil {
			return nil, err
		}
		samples = append(samples, Sample{time.UnixMicro(int64(f.TimeStamp)), mw / 1000})
	}
	slices.SortFunc(samples, func(a, b Sample) int { return a.At.Compare(b.At) })
	return samples, nil
}

// number returns the member of NVML's union that the type selects.
func number(kind nvml.ValueType, v [8]byte) (float64, error) {
	switch kind {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(binary.NativeEndian.Uint32(v[:])), nil
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(binary.NativeEndian.Uint32(v[:]))), nil
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(binary.NativeEndian.Uint64(v[:])), nil
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(binary.NativeEndian.Uint64(v[:]))), nil
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(binary.NativeEndian.Uint64(v[:])), nil
	}
	return 0, fmt.Errorf("unsupported value type %d of a power sample: %w", kind, ErrAbsent)
}
