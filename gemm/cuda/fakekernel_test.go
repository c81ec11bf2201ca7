package cuda

import (
	"fmt"
	"regexp"
	"strings"
	"unsafe"
)

// fakeKernel is a kernel of the pretended card, which has parameters but computes nothing.
type fakeKernel struct {
	name       string
	parameters []string // *, int, float or double
	names      []string // of the parameters
	module     uintptr
	shared     int  // most bytes of dynamic shared memory
	loaded     bool // has run
}

// FakeLaunch is a launch of a kernel, with the arguments as the kernel reads them: Address, int, float32, float64.
type FakeLaunch struct {
	Name            string
	Blocks, Threads [3]uint32
	Shared          uint32
	Parameters      []string
	Arguments       []any
}

// Argument returns the argument of a parameter.
func (l FakeLaunch) Argument(parameter string) any {
	for i, p := range l.Parameters {
		if p == parameter {
			return l.Arguments[i]
		}
	}
	panic(fmt.Sprintf("kernel %s has no parameter %q: %q", l.Name, parameter, l.Parameters))
}

// entry matches an entry point of a source. A name that ends in _##name is a macro's, for each type of activations.
var entry = regexp.MustCompile(`extern "C" __global__ void\s+(?:__cluster_dims__\([^)]*\)\s+)?(?:__launch_bounds__\([^)]*\)\s+)?(\w+?)(_##name)?\(([^)]*)\)`)

// parameterName matches the name at the end of a parameter.
var parameterName = regexp.MustCompile(`\w+$`)

// fakeKernels reads the entry points of CUDA C++. It is an error if Launch cannot pass a parameter.
func fakeKernels(source string) (map[string]*fakeKernel, error) {
	kernels := map[string]*fakeKernel{}
	for _, m := range entry.FindAllStringSubmatch(strings.ReplaceAll(source, "\\\n", " "), -1) {
		var parameters, names []string
		for p := range strings.SplitSeq(m[3], ",") {
			kind, _, _ := strings.Cut(strings.TrimSpace(p), " ")
			switch {
			case strings.Contains(p, "*"):
				kind = "*"
			case kind == "" && m[3] == "":
				continue
			case kind != "int" && kind != "float" && kind != "double":
				return nil, fmt.Errorf("error: kernel %s: parameter %q", m[1], p)
			}
			parameters, names = append(parameters, kind), append(names, parameterName.FindString(p))
		}
		entries := []string{m[1]}
		if m[2] != "" {
			entries = []string{m[1] + "_bf16", m[1] + "_fp16", m[1] + "_fp32"}
		}
		for _, name := range entries {
			if kernels[name] != nil {
				return nil, fmt.Errorf("error: kernel %s is defined twice", name)
			}
			kernels[name] = &fakeKernel{name: name, parameters: parameters, names: names, shared: 48 << 10}
		}
	}
	return kernels, nil
}

// modules are the driver's functions for kernels. The fake compiler's machine code is the source.
func (c *card) modules(a *api) {
	loaded := map[uintptr]map[string]*fakeKernel{}
	a.cuModuleLoadData = func(h *uintptr, image *byte) result {
		kernels, err := fakeKernels(cString(image))
		if err != nil || !c.create("cuModuleLoadData", h, "module") {
			return 200
		}
		for _, k := range kernels {
			k.module = *h
		}
		loaded[*h] = kernels
		return 0
	}
	a.cuModuleUnload = func(h uintptr) result { return c.destroy(h, "module") }
	a.cuModuleGetFunction = func(f *uintptr, module uintptr, name *byte) result {
		k := loaded[module][cString(name)]
		if !c.ok("cuModuleGetFunction") || c.alive[module] != "module" || k == nil {
			return 500
		}
		c.next += 0x100
		*f, c.kernels[c.next] = c.next, k
		return 0
	}
	a.cuFuncSetAttribute = func(f uintptr, attribute, value int32) result {
		if !c.ok("cuFuncSetAttribute") || c.kernels[f] == nil || attribute != 8 || int(value) > c.shared {
			return 1
		}
		c.kernels[f].shared = int(value)
		return 0
	}
	a.cuLaunchKernel = c.launch
}

func (c *card) launch(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, stream uintptr, arguments *unsafe.Pointer, extra uintptr) result {
	k := c.kernels[f]
	switch {
	case !c.ok("cuLaunchKernel"):
		return 719
	case k == nil || c.alive[k.module] != "module" || c.alive[stream] != "stream":
		return 400
	case gx*gy*gz == 0 || gy > 65535 || gz > 65535 || bx*by*bz == 0 || bx*by*bz > 1024 || int(shared) > k.shared || extra != 0:
		return 1
	case c.recording != 0 && !k.loaded: // a kernel cannot be loaded while recording
		return 900
	}
	k.loaded = true
	l := FakeLaunch{Name: k.name, Blocks: [3]uint32{gx, gy, gz}, Threads: [3]uint32{bx, by, bz}, Shared: shared, Parameters: k.names}
	for i, p := range unsafe.Slice(arguments, max(1, len(k.parameters)))[:len(k.parameters)] { // the driver copies them before it returns
		switch k.parameters[i] {
		case "*":
			at := *(*uint64)(p)
			if at != 0 && !c.allocated(at) {
				c.t.Errorf("kernel %s: argument %d, %#x, is not in the card's memory", k.name, i, at)
			}
			l.Arguments = append(l.Arguments, Address(at))
		case "int":
			l.Arguments = append(l.Arguments, int(*(*int32)(p)))
		case "float":
			l.Arguments = append(l.Arguments, *(*float32)(p))
		case "double":
			l.Arguments = append(l.Arguments, *(*float64)(p))
		}
	}
	return c.queue(fakeGraph{takes: c.kernel, copies: []func(){func() {
		c.launches = append(c.launches, l)
		if c.ran != nil {
			c.ran(l)
		}
	}}})
}

func (c *card) allocated(at uint64) bool {
	for base, m := range c.memory {
		if base <= at && at < base+uint64(len(m)) {
			return true
		}
	}
	return false
}
