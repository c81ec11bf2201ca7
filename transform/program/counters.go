package program

import "sync/atomic"

// Counters count work that a conversion should do only once. A nil *Counters counts nothing.
type Counters struct {
	Programs atomic.Int64 // number of compiled programs
	Factors  atomic.Int64 // number of factorised Hessians
}

func (c *Counters) program() {
	if c != nil {
		c.Programs.Add(1)
	}
}

func (c *Counters) factor() {
	if c != nil {
		c.Factors.Add(1)
	}
}
