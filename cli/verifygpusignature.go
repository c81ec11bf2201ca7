package cli

import "context"

// sign adds to every phase where the power of its layers goes, as a model of the card says by what was
// measured. It looks at every layer's bits, which takes some 10 ms each: it comes after the measuring. A
// card without such a model has a note instead.
func (m *layerMeter) sign(ctx context.Context, e *measuredEnergy) error {
	for i := range e.Phases {
		p := &e.Phases[i]
		if p.Total == nil || p.Total.Run == nil {
			continue
		}
		source, output, err := m.candidates(ctx, m.before, m.after, p.Tokens)
		if err != nil {
			return err
		}
		run := p.Total.Run.Baseline
		s := dissected{
			name: p.Phase, cold: p.Phase == "decode", before: source.Products, after: output.Products,
			info: m.machine.Platform(), seconds: run.Seconds,
		}
		if run.SMClock != nil {
			s.clock = *run.SMClock
		}
		if p.Components, e.unsigned, err = signatureOf(ctx, e.GPU, s); err != nil || e.unsigned != "" {
			return err
		}
	}
	return nil
}

// signatures of all phases that have one.
func (e *measuredEnergy) signatures() (list []*signature) {
	for _, p := range e.Phases {
		if p.Components != nil {
			list = append(list, p.Components)
		}
	}
	return list
}
