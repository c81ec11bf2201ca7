package component

import (
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/internal/elementary"
)

// Part is a component of the card.
type Part string

// The components, in the order of tables.
const (
	Static      Part = "static"
	Awake       Part = "awake"
	Multipliers Part = "multipliers"
	OnChip      Part = "on-chip"
	HBM         Part = "hbm"
)

// Parts returns the components in the order of tables.
func Parts() []Part { return []Part{Static, Awake, Multipliers, OnChip, HBM} }

// term is a summand of the power in watts: a coefficient times a rate times a power of the relative clock.
type term struct {
	name string
	part Part
	typ  arith.Type // arithmetic of the operations
	unit string
	bits bool // depends on the operands' bits
	// extra terms have a clock exponent larger by 1 than energies. no terms do not depend on the clock.
	extra, no bool
	rate      func(k *Kernel) float64 // per second
}

// Names of terms.
const (
	staticTerm  = "static"
	leakTerm    = "leakage per °C above 50"
	awakeTerm   = "awake"
	anyTerm     = "any multiprocessor awake"
	hbmTerm     = "hbm byte"
	sensorTerm  = "memory sensor's offset" // not part of the card's power
	opsPrefix   = "operation "
	bitsPostfix = ", bits"
)

func perSecond(k *Kernel, amount float64) float64 {
	if k.Seconds == 0 {
		return 0
	}
	return amount / k.Seconds
}

// busyShare returns the share of an execution in which multiprocessors may have work.
func busyShare(k *Kernel, launch float64) float64 {
	if k.Seconds <= 0 {
		return 1
	}
	return max(0, 1-(float64(launch*float64(max(1, k.Launches)))+k.Idle)/k.Seconds)
}

// varies reports which terms the readings determine.
type varies struct {
	sensor      bool // the memory's own power was read
	temperature bool
	awake       bool // some kernels run on a part of the multiprocessors
}

// terms returns the terms of a model with these types. Without the memory's own power, the path to HBM is part of
// HBM. In every execution, multiprocessors are idle for the time of an empty launch of each kernel.
func terms(types []arith.Type, told varies, launch float64) []term {
	busy := func(k *Kernel) float64 { return busyShare(k, launch) }
	leak := func(k *Kernel) float64 {
		if k.Temperature == 0 {
			return 0
		}
		return k.Temperature - usualTemperature
	}
	list := []term{
		{name: staticTerm, part: Static, unit: "W", no: true, rate: func(*Kernel) float64 { return 1 }},
		{name: awakeTerm, part: Awake, unit: "W", extra: true, rate: func(k *Kernel) float64 { return busy(k) * k.Awake }},
	}
	if told.temperature {
		list = append(list, term{name: leakTerm, part: Static, unit: "W", no: true, rate: leak})
	}
	if told.awake {
		list = append(list, term{name: anyTerm, part: Awake, unit: "W", extra: true, rate: func(k *Kernel) float64 { return busy(k) * truth(k.Awake > 0) }})
	}
	for _, t := range types {
		ops := func(k *Kernel) float64 {
			if k.Type != t {
				return 0
			}
			return perSecond(k, k.Ops)
		}
		list = append(list,
			term{name: opsPrefix + t.String(), part: Multipliers, typ: t, unit: "J", rate: ops},
			term{name: opsPrefix + t.String() + bitsPostfix, part: Multipliers, typ: t, unit: "J", bits: true, rate: func(k *Kernel) float64 { return ops(k) * k.Bits }})
	}
	asked := func(k *Kernel) float64 { return perSecond(k, k.Asked) }
	memory := func(k *Kernel) float64 { return perSecond(k, k.Memory) }
	again := func(k *Kernel) float64 { return perSecond(k, k.Again) }
	moved := func(rate func(*Kernel) float64) func(*Kernel) float64 {
		return func(k *Kernel) float64 { return rate(k) * k.Moved }
	}
	list = append(list,
		term{name: "cache byte", part: OnChip, unit: "J", rate: asked},
		term{name: "cache byte" + bitsPostfix, part: OnChip, unit: "J", bits: true, rate: moved(asked)})
	if told.sensor {
		list = append(list,
			term{name: "byte to memory", part: OnChip, unit: "J", rate: memory},
			term{name: "byte to memory" + bitsPostfix, part: OnChip, unit: "J", bits: true, rate: moved(memory)},
			term{name: "byte asked again", part: OnChip, unit: "J", rate: again})
	}
	return append(list,
		term{name: hbmTerm, part: HBM, unit: "J", no: true, rate: memory},
		term{name: hbmTerm + bitsPostfix, part: HBM, unit: "J", bits: true, no: true, rate: moved(memory)},
		term{name: hbmTerm + ", asked again", part: HBM, unit: "J", no: true, rate: again})
}

// at returns the factor from the coefficient to watts, at a clock relative to the highest.
func (t *term) at(k *Kernel, clock, exponent float64) float64 {
	switch {
	case t.no:
		return t.rate(k)
	case t.extra:
		exponent++
	}
	return t.rate(k) * elementary.Pow(clock, exponent)
}
