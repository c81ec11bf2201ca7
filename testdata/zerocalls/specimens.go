package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm/decoder"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/operand"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/predict"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

var contextType = reflect.TypeFor[context.Context]()

// makeSpecimens makes a useful value of each type that a caller gets from a constructor. done closes them.
func makeSpecimens() (specimens map[reflect.Type]reflect.Value, done func(), err error) {
	specimens = map[reflect.Type]reflect.Value{contextType: reflect.ValueOf(context.Background())}
	add := func(v any) { specimens[reflect.TypeOf(v)] = reflect.ValueOf(v) }

	dir := filepath.Join(os.TempDir(), "demo")
	if err := demo.Write(dir); err != nil {
		return nil, nil, err
	}
	m, err := weights.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	add(m)
	done = func() { m.Close() }
	calibration, err := cost.FindCalibration("h200")
	if err != nil {
		return nil, done, err
	}
	add(calibration)
	file, err := tokens.Open(tokens.Path(dir))
	if err != nil {
		return nil, done, err
	}
	add(file)
	add(transform.Passes)
	passes, err := transform.ParsePasses("round=4")
	if err != nil {
		return nil, done, err
	}
	add(passes)
	p, err := transform.Plan(context.Background(), m, transform.Options{Passes: passes, Cost: calibration})
	if err != nil {
		return nil, done, err
	}
	add(p)
	layout, err := arch.Resolve(m, nil)
	if err != nil {
		return nil, done, err
	}
	add(layout)
	d, err := quant.Describe(m)
	if err != nil {
		return nil, done, err
	}
	add(d)
	set := quant.Group(m, d)
	add(set)
	add(set.All[0])
	f, err := decoder.New(m, layout)
	if err != nil {
		return nil, done, err
	}
	add(f)
	add(pattern.MustParse("normal(0,1)"))
	add(operand.Of(m))
	add(power.NewSim(power.DefaultSim()))
	add(measure.Simulated(power.DefaultSim()))
	specimens[reflect.TypeFor[measure.Machine]()] = reflect.ValueOf(measure.Simulated(power.DefaultSim()))
	specimens[reflect.TypeFor[power.Card]()] = reflect.ValueOf(power.NewSim(power.DefaultSim()))
	specimens[reflect.TypeFor[predict.Predictor]()] = reflect.ValueOf(calibration)
	return specimens, done, nil
}
