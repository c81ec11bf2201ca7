package quant

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lowtoggle/lowtoggle/weights"
)

// Describe finds the quantised weights of a model, from its configs and the names, types and shapes of its
// tensors. No weights are read. An adapter in the model's folder is ignored.
//
// A weight of unknown layout has an empty Codes and a nil Shape. Describe returns an error if config and tensors contradict
// each other, if a weight lacks its scales, or if shapes or types do not fit. The error names the tensor, its file, and the
// field of the config.
func Describe(m *weights.Model) (*Description, error) {
	if m == nil {
		return nil, weights.ErrNoModel
	}
	c, err := readConfig(m)
	if err != nil {
		return nil, err
	}
	s := &survey{config: c, tensors: map[string]Stored{}, modules: map[string][]string{},
		d: &Description{tensors: map[string]stored{}, named: map[string]*Quantised{}}}
	for shard, f := range m.Shards {
		for _, info := range f.Tensors {
			if _, twice := s.tensors[info.Name]; twice {
				continue // package arch reports it
			}
			t, ok := f.Tensor(info.Name)
			if !ok { // headers alone
				t = weights.Tensor{Info: info, File: f.Path}
			}
			s.tensors[info.Name] = Stored{Part: Part{t, shard}, start: int64(len(f.Head())) + info.Begin}
			s.order = append(s.order, info.Name)
			s.modules[parent(info.Name)] = append(s.modules[parent(info.Name)], info.Name)
		}
	}
	if c != nil {
		s.d.Method = c.method
		if c.opaque != "" {
			s.d.Unknown = c.at("") + ": " + c.opaque
		}
	}
	s.findNested()
	if c != nil && c.opaque != "" {
		s.takeOpaque()
	} else {
		s.takeKnown()
	}
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.d, nil
}

// survey is the state of one call of [Describe].
type survey struct {
	config   *config // nil: none
	tensors  map[string]Stored
	order    []string            // the tensors' names in the order of the files
	modules  map[string][]string // the tensors' names by module: the text before the last dot
	nested   map[string][]string // bitsandbytes: "x.weight" → "x.weight.absmax" and others
	d        *Description
	problems []problem
	kinds    map[string]int // text of a problem without names and numbers → index of problems
}

// mostProblems is the largest number of problems that an error lists.
const mostProblems = 8

// problem is an error about a tensor, with the number of other tensors that have the same error.
type problem struct {
	tensor, text string
	others       int
}

// particulars matches the names and numbers in a problem's text. Problems that differ only there are the same.
var particulars = regexp.MustCompile(`"[^"]*"|[0-9]+`)

// failf records a problem of a tensor.
func (s *survey) failf(tensor, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	kind := particulars.ReplaceAllString(text, "")
	if i, ok := s.kinds[kind]; ok {
		s.problems[i].others++
		return
	}
	if s.kinds == nil {
		s.kinds = map[string]int{}
	}
	s.kinds[kind] = len(s.problems)
	s.problems = append(s.problems, problem{tensor, text, 0})
}

// err returns the problems as one error; nil if there are none.
func (s *survey) err() error {
	var list []error
	for i, p := range s.problems {
		if i == mostProblems {
			kinds := "kinds"
			if len(s.problems)-i == 1 {
				kinds = "kind"
			}
			list = append(list, fmt.Errorf("and %d other %s of problem", len(s.problems)-i, kinds))
			break
		}
		switch {
		case p.others == 1:
			p.text += "; 1 other tensor has the same problem"
		case p.others > 1:
			p.text += fmt.Sprintf("; %d other tensors have the same problem", p.others)
		}
		list = append(list, &weights.FormatError{File: s.tensors[p.tensor].File, Tensor: p.tensor, Offset: -1, Msg: p.text})
	}
	if len(list) > 0 {
		list = append(list, errors.New(s.advice()))
	}
	return errors.Join(list...)
}

// advice returns the last line of an error: what the user can do.
func (s *survey) advice() string {
	switch c := s.config; {
	case c == nil:
		return "download the model again"
	case c.field == "":
		return "download the model again, or correct " + c.file
	default:
		return fmt.Sprintf("download the model again, or correct %s in %s", c.field, c.file)
	}
}

// layout is a naming scheme for the tensors of a quantised weight.
type layout int

const (
	scaledLayout  layout = iota + 1 // codes in the weight's own tensor: weight, weight_scale
	packedLayout                    // weight_packed, weight_scale
	gptqLayout                      // qweight, qzeros, scales, of GPTQ and AWQ
	blocksLayout                    // x_blocks, x_scales
	nestedLayout                    // weight, weight.absmax
	bytesLayout                     // weight, SCB
	unknownLayout                   // the method is unknown
)

// scaleNames are the suffixes that a weight's scales add to the weight's name.
var scaleNames = []string{"_scale", "_scale_inv", "_weight_scale", "_weight_scale_inv"}

// ends are the suffixes that a weight's tensors add to its name.
var ends = map[string]Role{"_scale": Scales, "_scale_inv": Scales, "_weight_scale": Scales, "_weight_scale_inv": Scales, "_scales": Scales,
	"_scale_2": GlobalScale, "_weight_scale_2": GlobalScale, "_global_scale": GlobalScale, "_zero_point": ZeroPoints, "_g_idx": GroupIndex,
	"_shape": Shape, "_input_scale": ActivationScale, "_packed": Codes, "_blocks": Codes, ".absmax": Scales, ".nested_absmax": GlobalScale}

// beside are the names of other tensors in the module of a weight called "weight".
var beside = map[string]Role{"qweight": Codes, "scales": Scales, "qzeros": ZeroPoints, "g_idx": GroupIndex, "SCB": Scales,
	"input_scale": ActivationScale, "input_scale_ub": ActivationScale, "activation_scale": ActivationScale, "input_global_scale": ActivationScale,
	"input_zero_point": ActivationScale, "pre_quant_scale": ActivationScale, "output_scale": ActivationScale, "output_zero_point": ActivationScale,
	"k_scale": ActivationScale, "v_scale": ActivationScale}

// loose are names of scales of activations and caches that may belong to no weight.
var loose = []string{"k_scale", "v_scale", "q_scale", "kv_scale", "prob_scale", "k_zero_point", "v_zero_point", "input_scale", "output_scale"}

// certain are names that only parts of quantised weights have.
var certain = []string{"weight_scale", "weight_scale_inv", "weight_scale_2", "weight_global_scale", "weight_zero_point", "weight_packed", "weight_g_idx", "qweight", "qzeros"}

// findNested groups the tensors of bitsandbytes, whose names begin with a weight's whole name.
func (s *survey) findNested() {
	s.nested = map[string][]string{}
	for _, name := range s.order {
		if base, _, ok := strings.Cut(name, ".weight."); ok {
			base += ".weight"
			if _, ok := s.tensors[base]; ok {
				s.nested[base] = append(s.nested[base], name)
			}
		}
	}
}

// takeKnown finds and checks the weights of known layouts.
func (s *survey) takeKnown() {
	for _, name := range s.order {
		if base, l := s.base(name); l != 0 {
			s.take(name, base, l)
		}
	}
	s.takeLoose()
	s.chooseMethod()
	if len(s.problems) > 0 {
		return // the config is for another layout
	}
	for _, w := range s.d.Weights {
		s.check(w)
	}
	s.checkBare()
	s.checkCertain()
	s.checkIgnored()
	s.takeUnlisted()
}

// base returns the name of the weight whose codes a tensor holds, and the layout; the layout is 0 for every other tensor.
func (s *survey) base(name string) (base string, l layout) {
	t, last := s.tensors[name], last(name)
	module := strings.TrimSuffix(name, last)
	if b, ok := strings.CutSuffix(name, "_blocks"); ok && t.DType == weights.U8 && s.has(b+"_scales") {
		return b, blocksLayout
	}
	if b, ok := strings.CutSuffix(name, "_packed"); ok && isInteger(t.DType) && (last == "weight_packed" || s.scaleOf(b) != "") {
		return b, packedLayout
	}
	if last == "qweight" && isInteger(t.DType) {
		return module + "weight", gptqLayout
	}
	if !isCode(t.DType) {
		return "", 0
	}
	for _, other := range s.nested[name] {
		if end := other[len(name):]; end == ".absmax" || strings.HasPrefix(end, ".quant_state.") {
			return name, nestedLayout
		}
	}
	switch {
	case last == "weight" && s.has(module+"SCB"):
		return name, bytesLayout
	case s.scaleOf(name) != "":
		return name, scaledLayout
	}
	return "", 0
}

// isCode reports whether elements of a type may be codes that a scale multiplies.
func isCode(d weights.DType) bool {
	return d.Bits() <= 8 && d != weights.Bool
}

func isFloat(d weights.DType) bool {
	return slices.Contains([]weights.DType{weights.BF16, weights.F16, weights.F32, weights.F64}, d)
}

func isInteger(d weights.DType) bool {
	return slices.Contains([]weights.DType{weights.U8, weights.I8, weights.I16, weights.U16, weights.I32, weights.U32, weights.I64, weights.U64}, d)
}

func (s *survey) has(name string) bool {
	_, ok := s.tensors[name]
	return ok
}

// scaleOf returns the name of the scales of a weight's tensor; empty if there are none.
func (s *survey) scaleOf(base string) string {
	for _, end := range scaleNames {
		if s.has(base + end) {
			return base + end
		}
	}
	return ""
}

// take adds a weight with its codes and all tensors that belong to them.
func (s *survey) take(codes, base string, l layout) {
	if other := s.d.named[base]; other != nil {
		s.failf(codes, "holds codes of %q, but tensor %q does, too: the folder mixes two formats", base, other.Tensors[0].Name)
		return
	}
	w := &Quantised{Name: base, layout: l}
	s.d.Weights = append(s.d.Weights, w)
	s.d.named[base] = w
	s.own(w, codes, Codes)
	for _, name := range s.modules[parent(base)] {
		if role, ok := ends[strings.TrimPrefix(name, base)]; ok && strings.HasPrefix(name, base) {
			s.own(w, name, role)
		}
	}
	for _, name := range s.nested[base] {
		role, ok := ends[name[len(base):]]
		if !ok {
			role = Other
		}
		s.own(w, name, role)
	}
	if last(base) != "weight" {
		return
	}
	// All other tensors in the module of a linear layer belong to the weight, except vectors such as the bias.
	for _, name := range s.modules[parent(base)] {
		if role, ok := beside[last(name)]; ok {
			s.own(w, name, role)
		} else if t := s.tensors[name]; len(t.Shape) > 1 || !isFloat(t.DType) {
			s.own(w, name, Other)
		}
	}
}

// own assigns a tensor to a weight, unless it belongs to one already.
func (s *survey) own(w *Quantised, name string, r Role) {
	if !s.d.Holds(name) {
		t := s.tensors[name]
		t.Role = r
		s.d.add(w, t)
	}
}

// takeLoose takes the scales of activations and caches that belong to no weight.
func (s *survey) takeLoose() {
	if s.config == nil && len(s.d.Weights) == 0 {
		return
	}
	for _, name := range s.order {
		if slices.Contains(loose, last(name)) {
			s.own(nil, name, ActivationScale)
		}
	}
}

// takeOpaque takes every tensor that shows a sign of quantisation. All such tensors of one module are one weight.
func (s *survey) takeOpaque() {
	odd := map[string]bool{}
	for _, name := range s.order {
		if !s.plain(name) {
			odd[moduleOf(name)] = true
		}
	}
	for _, name := range s.order {
		module := moduleOf(name)
		if !odd[module] {
			continue
		}
		base := strings.TrimPrefix(module+".weight", ".")
		w := s.d.named[base]
		if w == nil {
			w = &Quantised{Name: base, Format: Format{Method: s.config.method}}
			s.d.Weights = append(s.d.Weights, w)
			s.d.named[base] = w
		}
		s.own(w, name, Other)
	}
}

// moduleOf returns the module of a tensor. A tensor whose name continues a weight's name belongs to the weight's module.
func moduleOf(name string) string {
	module, _, _ := strings.Cut(parent(name)+".", ".weight.")
	return strings.TrimSuffix(module, ".")
}

// plain reports whether nothing about a tensor indicates quantisation.
func (s *survey) plain(name string) bool {
	return isFloat(s.tensors[name].DType) && (last(name) == "weight" || last(name) == "bias")
}

// checkCertain records a problem for scales and similar tensors of weights that are not stored as codes. If nothing else in
// the model indicates a quantisation, it takes the tensors of their modules as weights of unknown format instead.
func (s *survey) checkCertain() {
	quantised := s.config != nil || len(s.d.Weights) > 0
	for _, name := range s.order {
		if s.d.Holds(name) || !slices.Contains(certain, last(name)) {
			continue
		}
		base := parent(name) + ".weight"
		if !quantised {
			w := s.d.named[base]
			if w == nil {
				w = &Quantised{Name: base}
				s.d.Weights, s.d.named[base] = append(s.d.Weights, w), w
			}
			for _, other := range s.modules[parent(name)] {
				s.own(w, other, Other)
			}
			continue
		}
		said := ""
		if s.config != nil {
			said = ", and " + s.config.says()
		}
		if t, ok := s.tensors[base]; ok {
			s.failf(name, "belongs to a quantised weight%s, but tensor %q (%s%v) holds no codes", said, base, t.DType, t.Shape)
		} else {
			s.failf(name, "belongs to a quantised weight%s, but no tensor holds the codes of %q", said, base)
		}
	}
}

// checkBare records a problem for codes without scales: matrices of a type of codes in a quantised checkpoint.
func (s *survey) checkBare() {
	bare := map[weights.DType]string{} // why a matrix of this type needs scales
	if s.config != nil {
		for _, g := range s.config.schemes {
			switch {
			case g.codes == "fp8":
				bare[weights.F8E4M3] = s.config.says()
			case g.codes == "int8" && s.config.method == methodCompressed:
				bare[weights.I8] = s.config.says()
			case g.codes == "nvfp4":
				bare[weights.U8] = s.config.says()
			}
		}
	}
	for _, w := range s.d.Weights {
		if d := w.Tensors[0].DType; w.layout == scaledLayout && bare[d] == "" {
			bare[d] = "other weights have scales"
		}
	}
	for _, name := range s.order {
		t := s.tensors[name]
		why := bare[t.DType]
		if why == "" || s.d.Holds(name) || last(name) != "weight" || len(t.Shape) < 2 {
			continue
		}
		end := "_scale"
		if s.config != nil && s.config.method == methodFP8 {
			end = "_scale_inv"
		}
		s.failf(name, "is %s%v without scales: there is no tensor %q in any shard, but %s", t.DType, t.Shape, name+end, why)
	}
}

// checkIgnored records a problem for quantised weights that the config lists as not quantised.
func (s *survey) checkIgnored() {
	if s.config == nil {
		return
	}
	for _, w := range s.d.Weights {
		if entry, ok := s.config.excludes(parent(w.Name)); ok && len(w.Tensors) > 0 {
			s.failf(w.Tensors[0].Name, "holds codes, but %s lists %q as not quantised", s.config.at(s.config.ignoring), entry)
		}
	}
	if len(s.d.Weights) == 0 && !s.config.dense && len(s.problems) == 0 {
		for _, name := range s.order {
			if t := s.tensors[name]; len(t.Shape) > 1 {
				s.failf(name, "is %s%v and has no scales, and no tensor of the folder holds codes, but %s", t.DType, t.Shape, s.config.says())
				return
			}
		}
	}
}

// takeUnlisted takes matrices that are stored unquantised although the config implies that they are quantised: the config's
// list of unquantised modules lacks them, and the same module of another layer is quantised.
func (s *survey) takeUnlisted() {
	if s.config == nil || s.config.ignoring == "" || !s.config.targetsAll() {
		return
	}
	kinds := map[string]bool{}
	for _, w := range s.d.Weights {
		kinds[weights.Outline(w.Name)] = true
	}
	for _, name := range s.order {
		t := s.tensors[name]
		if s.d.Holds(name) || last(name) != "weight" || !isFloat(t.DType) || len(t.Shape) < 2 || !kinds[weights.Outline(name)] || s.config.mentions(parent(name)) {
			continue
		}
		w := &Quantised{Name: name, Format: Format{Codes: "unquantised, but not listed in " + s.config.at(s.config.ignoring)}, Shape: t.Shape}
		s.d.Weights, s.d.named[name] = append(s.d.Weights, w), w
		s.own(w, name, Values)
	}
}

// chooseMethod finds the method that wrote the weights. It records a problem if the config's method cannot have written a
// weight, or if no single method can have written all weights.
func (s *survey) chooseMethod() {
	if s.config != nil {
		for _, w := range s.d.Weights {
			w.Format.Method = s.config.method
			if can := s.methods(w); !slices.Contains(can, s.config.method) {
				s.failf(w.Tensors[0].Name, "has the layout of %s, but %s", strings.Join(can, " or "), s.config.says())
			}
		}
		return
	}
	var can []string
	for i, w := range s.d.Weights {
		own := s.methods(w)
		if i == 0 {
			can = own
			continue
		}
		both := slices.DeleteFunc(slices.Clone(can), func(name string) bool { return !slices.Contains(own, name) })
		if len(both) == 0 {
			s.failf(w.Tensors[0].Name, "has the layout of %s, but tensor %q (%s) has that of %s: the folder mixes two formats", strings.Join(own, " or "),
				s.d.Weights[0].Tensors[0].Name, filepath.Base(s.d.Weights[0].Tensors[0].File), strings.Join(can, " or "))
			return
		}
		can = both
	}
	if len(can) == 1 {
		for _, w := range s.d.Weights {
			w.Format.Method = can[0]
		}
	}
}

// methods returns the methods that can have written a weight with these tensors.
func (s *survey) methods(w *Quantised) []string {
	codes := w.Tensors[0]
	switch w.layout {
	case gptqLayout:
		return s.gptqOrAWQ(w)
	case packedLayout:
		return []string{methodCompressed}
	case blocksLayout:
		return []string{methodMXFP4}
	case nestedLayout, bytesLayout:
		return []string{methodBNB}
	}
	switch {
	case codes.DType == weights.U8 || codes.DType == weights.F4:
		return []string{methodModelOpt}
	case codes.DType == weights.I8:
		return []string{methodCompressed}
	case strings.HasSuffix(s.scaleOf(w.Name), "_inv"):
		return []string{methodFP8}
	}
	return []string{methodCompressed, methodFBGEMM, methodModelOpt, methodFP8}
}

// part returns the first tensor of a role; false if there is none.
func (w *Quantised) part(r Role) (Stored, bool) {
	i := slices.IndexFunc(w.Tensors, func(t Stored) bool { return t.Role == r })
	if i < 0 {
		return Stored{}, false
	}
	return w.Tensors[i], true
}

// parent returns a name without its last part; empty if there is only one part.
func parent(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

// last returns a name's last part.
func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
