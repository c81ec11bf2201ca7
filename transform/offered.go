package transform

import (
	"context"

	"github.com/lowtoggle/lowtoggle/weights"
)

// offered gives the weights of an offer in the source's order.
type offered struct {
	s *search
	o offer
}

func (s *search) values(o offer) Values { return offered{s, o} }

// Tensor makes a layer's values anew.
func (v offered) Tensor(ctx context.Context, name string) (out []float32, err error) {
	i, ok := v.s.index[name]
	if !ok {
		return nil, nil
	}
	steps := v.s.point(v.o, i).Steps
	if len(steps) == 0 {
		return nil, nil
	}
	t := v.s.targets[i]
	err = weights.Guard(t.tensor.File, func() error {
		prog, err := t.compile(steps...)
		if err != nil {
			return err
		}
		if err := prog.prepare(ctx, v.s.p.opt.Workers); err != nil {
			return err
		}
		defer prog.letGo()
		out, err = prog.sourceValues(ctx)
		return err
	})
	return out, err
}
