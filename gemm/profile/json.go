package profile

import (
	"encoding/json"
	"time"
)

// In JSON times are seconds, and their names say so. What a type's timed method returns is the type with its
// durations in these other clothes, for both directions.

// inSeconds is a duration in JSON.
type inSeconds struct{ *time.Duration }

func (s inSeconds) IsZero() bool { return *s.Duration == 0 }

func (s inSeconds) MarshalJSON() ([]byte, error) { return json.Marshal(s.Seconds()) }

func (s inSeconds) UnmarshalJSON(text []byte) error {
	var v float64
	err := json.Unmarshal(text, &v)
	*s.Duration = seconds(v)
	return err
}

// allInSeconds are durations in JSON.
type allInSeconds struct{ all *[]time.Duration }

func (s allInSeconds) MarshalJSON() ([]byte, error) {
	list := make([]inSeconds, len(*s.all))
	for i := range list {
		list[i] = inSeconds{&(*s.all)[i]}
	}
	return json.Marshal(list)
}

func (s allInSeconds) UnmarshalJSON(text []byte) error {
	var list []float64
	err := json.Unmarshal(text, &list)
	*s.all = nil
	for _, v := range list {
		*s.all = append(*s.all, seconds(v))
	}
	return err
}

func (p *Progress) timed() any {
	type plain Progress
	return &struct {
		*plain
		At allInSeconds `json:"at_seconds"`
	}{(*plain)(p), allInSeconds{&p.At}}
}

func (l *Leg) timed() any {
	type plain Leg
	return &struct {
		*plain
		Begin inSeconds `json:"begin_seconds"`
		End   inSeconds `json:"end_seconds"`
	}{(*plain)(l), inSeconds{&l.Begin}, inSeconds{&l.End}}
}

func (m *Milestone) timed() any {
	type plain Milestone
	return &struct {
		*plain
		At   inSeconds `json:"at_seconds"`
		Over inSeconds `json:"over_seconds"`
	}{(*plain)(m), inSeconds{&m.At}, inSeconds{&m.Over}}
}

func (p *SteadyPoint) timed() any {
	type plain SteadyPoint
	return &struct {
		*plain
		At   inSeconds `json:"at_seconds,omitzero"`
		Over inSeconds `json:"over_seconds,omitzero"`
	}{(*plain)(p), inSeconds{&p.At}, inSeconds{&p.Over}}
}

func (c *Curve) timed() any {
	type plain Curve
	return &struct {
		Start inSeconds `json:"start_seconds"`
		Step  inSeconds `json:"step_seconds"`
		*plain
		Resolution allInSeconds `json:"resolution_seconds"`
	}{inSeconds{&c.Start}, inSeconds{&c.Step}, (*plain)(c), allInSeconds{&c.Resolution}}
}

func (s *Sensor) timed() any {
	type plain Sensor
	return &struct {
		*plain
		Window inSeconds `json:"window_seconds"`
		Delay  inSeconds `json:"delay_seconds"`
		Lag    inSeconds `json:"lag_seconds"`
	}{(*plain)(s), inSeconds{&s.Window}, inSeconds{&s.Delay}, inSeconds{&s.Lag}}
}

func (r *Reading) timed() any {
	type plain Reading
	return &struct {
		*plain
		At    inSeconds `json:"at_seconds"`
		Since inSeconds `json:"since_seconds,omitzero"`
	}{(*plain)(r), inSeconds{&r.At}, inSeconds{&r.Since}}
}

func (s *State) timed() any {
	type plain State
	return &struct {
		At inSeconds `json:"at_seconds"`
		*plain
	}{inSeconds{&s.At}, (*plain)(s)}
}

func (i *Inside) timed() any {
	type plain Inside
	return &struct {
		*plain
		Length     inSeconds `json:"execution_seconds"`
		Resolution inSeconds `json:"resolution_seconds"`
	}{(*plain)(i), inSeconds{&i.Length}, inSeconds{&i.Resolution}}
}

func (a *After) timed() any {
	type plain After
	return &struct {
		*plain
		Over inSeconds `json:"over_seconds"`
	}{(*plain)(a), inSeconds{&a.Over}}
}

func (s *Sync) timed() any {
	type plain Sync
	return &struct {
		*plain
		Delay    inSeconds `json:"delay_seconds"`
		Residual inSeconds `json:"residual_seconds"`
		Launch   inSeconds `json:"launch_seconds"`
	}{(*plain)(s), inSeconds{&s.Delay}, inSeconds{&s.Residual}, inSeconds{&s.Launch}}
}

func (g *Guidance) timed() any {
	type plain Guidance
	return &struct {
		Above inSeconds `json:"above_seconds"`
		*plain
		Density inSeconds `json:"density_seconds"`
	}{inSeconds{&g.Above}, (*plain)(g), inSeconds{&g.Density}}
}

func (p Progress) MarshalJSON() ([]byte, error)    { return json.Marshal(p.timed()) }
func (l Leg) MarshalJSON() ([]byte, error)         { return json.Marshal(l.timed()) }
func (m Milestone) MarshalJSON() ([]byte, error)   { return json.Marshal(m.timed()) }
func (p SteadyPoint) MarshalJSON() ([]byte, error) { return json.Marshal(p.timed()) }
func (c Curve) MarshalJSON() ([]byte, error)       { return json.Marshal(c.timed()) }
func (s Sensor) MarshalJSON() ([]byte, error)      { return json.Marshal(s.timed()) }
func (r Reading) MarshalJSON() ([]byte, error)     { return json.Marshal(r.timed()) }
func (s State) MarshalJSON() ([]byte, error)       { return json.Marshal(s.timed()) }
func (i Inside) MarshalJSON() ([]byte, error)      { return json.Marshal(i.timed()) }
func (a After) MarshalJSON() ([]byte, error)       { return json.Marshal(a.timed()) }
func (s Sync) MarshalJSON() ([]byte, error)        { return json.Marshal(s.timed()) }
func (g Guidance) MarshalJSON() ([]byte, error)    { return json.Marshal(g.timed()) }

func (p *Progress) UnmarshalJSON(text []byte) error    { return json.Unmarshal(text, p.timed()) }
func (l *Leg) UnmarshalJSON(text []byte) error         { return json.Unmarshal(text, l.timed()) }
func (m *Milestone) UnmarshalJSON(text []byte) error   { return json.Unmarshal(text, m.timed()) }
func (p *SteadyPoint) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, p.timed()) }
func (c *Curve) UnmarshalJSON(text []byte) error       { return json.Unmarshal(text, c.timed()) }
func (s *Sensor) UnmarshalJSON(text []byte) error      { return json.Unmarshal(text, s.timed()) }
func (r *Reading) UnmarshalJSON(text []byte) error     { return json.Unmarshal(text, r.timed()) }
func (s *State) UnmarshalJSON(text []byte) error       { return json.Unmarshal(text, s.timed()) }
func (i *Inside) UnmarshalJSON(text []byte) error      { return json.Unmarshal(text, i.timed()) }
func (a *After) UnmarshalJSON(text []byte) error       { return json.Unmarshal(text, a.timed()) }
func (s *Sync) UnmarshalJSON(text []byte) error        { return json.Unmarshal(text, s.timed()) }
func (g *Guidance) UnmarshalJSON(text []byte) error    { return json.Unmarshal(text, g.timed()) }
