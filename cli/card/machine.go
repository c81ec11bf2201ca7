package card

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/printable"
)

// device is a card that --device names.
type device struct {
	text  string
	index int // number of the GPU; negative for a simulated card
	state string
}

const simulatedDevice = "simulated"

// cardLabel returns a card's name with its id; an empty id is unknown.
func cardLabel(name, id string) string {
	if id == "" {
		return printable.Quote(name)
	}
	return printable.Quote(name + " (" + id + ")")
}

// parseDevices reads a list of GPU numbers or simulated cards. simulated:FILE keeps the settings of a simulated card
// in a file, because a real card's settings outlive a process. Only tests use simulated:FILE, and the help does not
// mention it.
func parseDevices(text string) (list []device, err error) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		d := device{text: strings.TrimSpace(part), index: -1}
		file, stateful := strings.CutPrefix(d.text, simulatedDevice+":")
		switch {
		case d.text == simulatedDevice:
		case stateful && file != "":
			d.state = file
		default:
			d.index, err = strconv.Atoi(d.text)
			if err != nil || d.index < 0 {
				return nil, exit.Usagef("--device %s: give a number, 0 for the first GPU, or simulated", text)
			}
			d.text = strconv.Itoa(d.index)
		}
		if d.text != simulatedDevice && seen[d.text] {
			return nil, exit.Usagef("--device %s: %s is named twice: name it once", text, d.text)
		}
		seen[d.text] = true
		list = append(list, d)
	}
	return list, nil
}

// openMachine opens the single card that --device names. For several cards see [openMachines].
func openMachine(text string, seed uint64) (measure.Machine, error) {
	list, err := parseDevices(text)
	if err != nil {
		return nil, err
	}
	if len(list) > 1 {
		return nil, exit.Usagef("--device %s: this command takes one card; measure and verify --gpu take several", text)
	}
	return list[0].open(seed)
}

// machines are the cards that a command measures; there is at least one.
type machines []measure.Named

// openMachines opens all cards that --device names. Simulated cards differ in their noise.
func openMachines(text string, seed uint64) (machines, error) {
	list, err := parseDevices(text)
	if err != nil {
		return nil, err
	}
	var all machines
	for i, d := range list {
		name := "card " + d.text
		if d.index < 0 {
			name = fmt.Sprintf("%s %d", simulatedDevice, i+1)
		}
		m, err := d.open(seed + uint64(i))
		if err != nil {
			if len(list) > 1 {
				err = fmt.Errorf("%s: %w", name, err)
			}
			return nil, errors.Join(err, all.Close())
		}
		all = append(all, measure.Named{Name: name, Machine: m})
	}
	return all, nil
}

// simulatedCard is the default simulated card. Tests replace it to inject faults.
var simulatedCard = power.DefaultSim

func (d device) open(seed uint64) (measure.Machine, error) {
	if d.index >= 0 {
		m, err := measure.Open(d.index)
		return m, simulatedInstead(err)
	}
	o := simulatedCard()
	o.Seed, o.State = seed+1, d.state
	return measure.OpenSimulated(o)
}

// simulatedInstead adds a hint about --device simulated to the error of a missing GPU.
func simulatedInstead(err error) error {
	if !measure.NoGPU(err) {
		return err
	}
	return fmt.Errorf("%w (--device simulated shows what a report looks like)", err)
}

// smallest returns the card with the least memory.
func (m machines) smallest() measure.Machine {
	return slices.MinFunc(m, func(a, b measure.Named) int { return cmp.Compare(memoryOf(a), memoryOf(b)) })
}

func memoryOf(m measure.Machine) int64 {
	if p := m.Platform(); p != nil {
		return p.Memory
	}
	return 0
}

// Close closes all cards, in reverse order.
func (m machines) Close() error {
	var errs []error
	for _, one := range slices.Backward(m) {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}
