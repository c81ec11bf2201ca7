package power

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// SimOptions describe a simulated card. Start from DefaultSim and change single fields.
type SimOptions struct {
	Seed uint64
	// Idle is the card's idle power at ReferenceC, in watts.
	Idle float64
	// Cap is the power limit in watts. A [Governor] can set a limit between CapMin and Cap. A load that would draw more
	// power runs at a lower clock.
	Cap, CapMin float64
	// Overshoot is the relative amount by which a load that reaches the cap from lower power first exceeds the cap.
	// Power then oscillates around the cap with the period SwingPeriod and decays with SwingDecay.
	Overshoot               float64
	SwingPeriod, SwingDecay time.Duration
	// MaxClock and MinClock are the limits of the multiprocessors' clock, in MHz.
	MaxClock, MinClock float64
	// ClockExponent relates a load's power to the clock: power ∝ clock^ClockExponent. Its execution time is ∝ 1/clock.
	ClockExponent float64
	// BurstCap is the power in watts that the card never exceeds, even while its mean power is below Cap. Work that
	// would exceed BurstCap runs at a lower clock than the reported clock. 0: no such limit.
	BurstCap float64
	// Leakage is the additional power in W/°C above ReferenceC.
	Leakage, ReferenceC float64
	// Ambient is the air temperature in °C, AmbientRise its rate of change in °C/s.
	Ambient, AmbientRise float64
	// ThermalResistance in °C/W and ThermalTime in seconds describe how the die warms up.
	ThermalResistance, ThermalTime float64
	// Rise is the time constant with which measured power follows the load.
	Rise time.Duration
	// Tick is the time between steps of the energy counter, TickJitter its standard deviation.
	Tick, TickJitter time.Duration
	// Query is the duration of one query to the card.
	Query time.Duration
	// Stall is the duration of one in StallEvery queries. If StallEvery is 0, no query stalls.
	Stall      time.Duration
	StallEvery int
	// PowerNoise and TimeNoise are the relative standard deviations of the mean over one second.
	PowerNoise, TimeNoise float64
	// DipRate is the number of clock dips per second. In a dip the clock falls to the share DipClock for the time
	// DipTime.
	DipRate, DipClock float64
	DipTime           time.Duration
	// Addresses is the relative change of power when a whole model or a batch moves to the next place in memory.
	Addresses float64
	// FirstExecutions are the factors by which the first executions on an idle card take longer.
	FirstExecutions []float64
	// SlowSequences is the share of sequences in which all executions take longer, by the share SlowBy.
	SlowSequences, SlowBy float64
	// ClockOffset and ClockDrift relate the card's clock to [Sim.Now]. ClockDrift is in parts per million.
	ClockOffset time.Duration
	ClockDrift  float64
	// ClockDelay is the least duration of a reading of the card's clock. Half of it passes before and half after the
	// card reads its clock. ClockJitter is the mean additional time of each half.
	ClockDelay, ClockJitter time.Duration
	// BufferSize is the number of stored power readings. One reading is taken every BufferEvery, as the mean over the
	// preceding BufferWindow. 0: no buffer.
	BufferSize                int
	BufferEvery, BufferWindow time.Duration
	// Hot is the temperature in °C above which the card reduces its clock; 0: never.
	Hot float64
	// Other is the power in watts of another process, from the time OtherFrom on; 0: no other process.
	Other     float64
	OtherFrom time.Duration
	// Faults are the faults of the card and its sensors. Default: none.
	Faults []SimFault
	// State is the file that keeps power limit and locked clock after the process ends. Empty: they are not kept.
	State string
	// Unprivileged makes changes of settings fail for lack of permission.
	Unprivileged bool
}

// DefaultSim returns an invented card with little noise. Its numbers have the magnitude of a data-centre GPU's numbers,
// but describe no real GPU. Measurements and predictions for real GPUs do not use them.
func DefaultSim() SimOptions {
	return SimOptions{
		Idle: 90, Cap: 700, CapMin: 200, BurstCap: 900, Overshoot: 0.06, SwingPeriod: 1100 * time.Millisecond, SwingDecay: 1500 * time.Millisecond,
		MaxClock: 2000, MinClock: 300, ClockExponent: 2.5,
		Leakage: 1.3, ReferenceC: 55, Ambient: 28, ThermalResistance: 0.05, ThermalTime: 12,
		Rise: 10 * time.Millisecond, Tick: 100 * time.Millisecond, TickJitter: time.Millisecond,
		Query: 100 * time.Microsecond, PowerNoise: 0.0025, TimeNoise: 0.0005,
		DipRate: 0.003, DipClock: 0.7, DipTime: 400 * time.Millisecond,
		FirstExecutions: []float64{1.5, 1.2, 1.05}, SlowSequences: 0.1, SlowBy: 0.08,
		ClockOffset: 1000 * time.Second, ClockDrift: 15, ClockDelay: 12 * time.Microsecond, ClockJitter: 2 * time.Microsecond,
		BufferSize: 119, BufferEvery: 20 * time.Millisecond, BufferWindow: 20 * time.Millisecond,
	}
}

// Sim is a simulated card together with its clock and its loads. Its virtual time advances only by queries, sleeping
// and waiting. It must not be used concurrently.
type Sim struct {
	opt      SimOptions
	rng      *rand.Rand
	now      time.Duration
	queue    []*simWork
	busy     time.Duration // when the card last ran out of work; negative: never
	power    float64       // watts, after Rise
	tempC    float64
	joule    float64 // energy drawn since the start
	memJoule float64 // energy drawn by the memory
	info     Info
	settings simSettings
	simState
	simSensors
	faults simFaults
	hooks  []simHook
}

// simState is the part of the card's state that is constant between two events.
type simState struct {
	target      float64 // watts that power approaches
	memory      float64 // power of the memory in watts
	clock       float64 // MHz
	effective   float64 // clock at which the work runs, in MHz
	rate        float64 // executions per second of the load at the front of the queue
	reasons     Throttle
	powerFactor float64 // factor of the noise
	timeFactor  float64
	dipUntil    time.Duration
	swingFrom   time.Duration // when power last reached the cap
	nextNoise   time.Duration
}

type simHook struct {
	at time.Duration
	do func()
}

const simNoiseSlot = 250 * time.Millisecond

// NewSim returns a card that has been idle for a long time. It panics if [OpenSim] would return an error: if State is
// set and invalid, or if the options are not [DefaultSim] with changes.
func NewSim(opt SimOptions) *Sim {
	s, err := OpenSim(opt)
	if err != nil {
		panic(err)
	}
	return s
}

// OpenSim returns a card that has been idle for a long time. It returns an error if State exists and cannot be read or
// is invalid. It also returns an error if the power limit, the clock or the tick of the energy counter is not positive,
// because virtual time would not advance; start from [DefaultSim].
func OpenSim(opt SimOptions) (*Sim, error) {
	if opt.Cap <= 0 || opt.MaxClock <= 0 || opt.Tick <= 0 {
		return nil, fmt.Errorf("simulated card with a power limit of %v W, a clock of %v MHz and a tick of %v: all must be above 0; start from DefaultSim", opt.Cap, opt.MaxClock, opt.Tick)
	}
	s := &Sim{opt: opt, rng: rand.New(rand.NewPCG(opt.Seed, 1)), busy: -simIdle, settings: simSettings{Limit: opt.Cap}}
	if err := s.recall(); err != nil {
		return nil, err
	}
	limit := s.settings.Limit
	s.info = Info{Name: "simulated card", Driver: "none", PowerLimit: &limit, PowerLimitMin: &opt.CapMin,
		PowerLimitMax: &opt.Cap, PowerLimitPreset: &opt.Cap, MinSMClock: &opt.MinClock, MaxSMClock: &opt.MaxClock}
	s.tempC = opt.Ambient + opt.Idle*opt.ThermalResistance
	s.power = opt.Idle + opt.Leakage*(s.tempC-opt.ReferenceC)
	s.noise()
	s.settle()
	s.nextTick = seconds(s.rng.Float64() * opt.Tick.Seconds())
	s.nextSlot = simSlot
	s.instant, s.average = Sample{simEpoch, s.power}, simEpoch
	s.buffer.begin(opt, s.power)
	return s, nil
}

// advance advances virtual time to a moment, event by event.
func (s *Sim) advance(to time.Duration) {
	for s.now < to {
		s.flow(min(to, s.nextEvent()))
		s.events()
	}
}

// nextEvent returns the time of the next change that flow does not integrate.
func (s *Sim) nextEvent() time.Duration {
	next := min(s.nextTick, s.nextSlot, s.nextNoise, s.buffer.next())
	if len(s.queue) > 0 {
		next = min(next, s.now+seconds(s.queue[0].left/s.rate)+1)
	}
	return max(next, s.now+1)
}

// flow integrates power and work over time. Power approaches its target exponentially.
func (s *Sim) flow(to time.Duration) {
	dt, rise := (to - s.now).Seconds(), s.opt.Rise.Seconds()
	fade := math.Exp(-dt / rise)
	s.joule += s.target*dt + (s.power-s.target)*rise*(1-fade)
	s.power = s.target + (s.power-s.target)*fade
	s.memJoule += s.memory * dt
	if len(s.queue) > 0 {
		s.queue[0].left -= dt * s.rate
		s.queue[0].cycles += dt * s.effective
	}
	s.now = to
}

// events handles the events that are due now.
func (s *Sim) events() {
	if len(s.queue) > 0 && s.queue[0].left <= 1e-9 {
		s.finishWork()
		s.settle()
	}
	if s.now >= s.nextNoise {
		s.noise()
		s.settle()
	}
	if s.now >= s.nextTick {
		s.tick()
	}
	s.buffer.take(s.now, s.joule)
	if s.now >= s.nextSlot {
		s.warm()
		s.slot()
		s.settle()
		s.callHooks()
	}
}

func (s *Sim) finishWork() {
	done := s.queue[0]
	done.end, s.busy = s.now, s.now
	if s.queue = s.queue[1:]; len(s.queue) > 0 {
		s.queue[0].begin = s.now
		s.openGap(done)
	}
}

func (s *Sim) callHooks() {
	for i := 0; i < len(s.hooks); i++ {
		if h := s.hooks[i]; s.now >= h.at {
			s.hooks = append(s.hooks[:i], s.hooks[i+1:]...)
			i--
			h.do()
		}
	}
}

// noise draws the noise of the next time slot, and possibly a clock dip.
func (s *Sim) noise() {
	per := math.Sqrt(1 / simNoiseSlot.Seconds())
	s.powerFactor = 1 + s.opt.PowerNoise*per*s.rng.NormFloat64()
	s.timeFactor = 1 + s.opt.TimeNoise*per*s.rng.NormFloat64()
	if s.rng.Float64() < s.opt.DipRate*simNoiseSlot.Seconds() {
		s.dipUntil = s.now + s.opt.DipTime
	}
	s.nextNoise = s.now + simNoiseSlot
}

// warm updates the die's temperature for one time slot.
func (s *Sim) warm() {
	ambient := s.opt.Ambient + s.opt.AmbientRise*s.now.Seconds()
	s.tempC += (ambient + s.power*s.opt.ThermalResistance - s.tempC) * simSlot.Seconds() / s.opt.ThermalTime
}

// settle computes clock, power and speed from the load, the temperature, the noise, the cap and the locked clock.
func (s *Sim) settle() {
	still := s.opt.Idle + s.opt.Leakage*(s.tempC-s.opt.ReferenceC)
	if s.opt.Other > 0 && s.now >= s.opt.OtherFrom {
		still += s.opt.Other
	}
	if s.failing(FaultProcess) {
		still += simOtherWatts
	}
	s.spoilSettings()
	share := 1.0 // of the maximum clock
	before := s.reasons
	s.reasons = 0
	if s.settings.Locked > 0 && s.settings.Locked < s.opt.MaxClock {
		share = s.settings.Locked / s.opt.MaxClock
		s.reasons |= ApplicationClocks
	}
	if len(s.queue) == 0 {
		s.target, s.memory, s.clock, s.rate = still, simMemoryIdle, s.opt.MinClock, 0
		if s.settings.Locked > 0 {
			s.clock = s.settings.Locked
		}
		s.reasons |= GPUIdle
		return
	}
	work := s.queue[0]
	if work.gap { // a gap is too short for the clock to change
		s.target, s.memory, s.rate = still, simMemoryIdle, 1/work.Seconds
		s.reasons |= before & SoftwarePowerCap
		return
	}
	demand := (work.Watts - s.opt.Idle) * s.powerFactor
	atMoments := 1.0
	if most := s.opt.BurstCap; most > 0 {
		atMoments = math.Pow(max(0, most-still)/demand, 1/s.opt.ClockExponent)
	}
	if work.slot > 0 {
		if most := s.pacedShare(work, still, demand); most < min(share, atMoments) {
			share = max(s.opt.MinClock/s.opt.MaxClock, most)
			s.reasons |= SoftwarePowerCap
		}
	} else if limit := s.settings.Limit; still+demand*math.Pow(share, s.opt.ClockExponent) > limit {
		if before&SoftwarePowerCap == 0 && s.power < 0.95*limit {
			s.swingFrom = s.now
		}
		limit *= 1 + s.swing()
		share = max(s.opt.MinClock/s.opt.MaxClock, min(share, math.Pow(max(0, limit-still)/demand, 1/s.opt.ClockExponent)))
		s.reasons |= SoftwarePowerCap
	}
	if s.opt.Hot > 0 && s.tempC > s.opt.Hot || s.failing(FaultHeat) {
		share *= 0.8
		s.reasons |= SoftwareThermal
	}
	if s.now < s.dipUntil {
		share *= s.opt.DipClock
	}
	s.clock = share * s.opt.MaxClock
	share = min(share, atMoments)
	s.target = still + demand*math.Pow(share, s.opt.ClockExponent)
	s.memory = simMemoryIdle + work.Memory*share
	s.effective = share * s.opt.MaxClock
	s.rate = share / (work.Seconds * s.timeFactor)
}

// swing returns the relative amount by which power exceeds the cap now.
func (s *Sim) swing() float64 {
	age := (s.now - s.swingFrom).Seconds()
	return s.opt.Overshoot * math.Cos(2*math.Pi*age/s.opt.SwingPeriod.Seconds()) * math.Exp(-age/s.opt.SwingDecay.Seconds())
}
