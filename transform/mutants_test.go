package transform_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// TestMutants makes single errors in every family's file. Each error must be rejected, or change some model's
// outputs. Otherwise the proof of the catalogue would not find it.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and without shared data for the race detector")
	}
	t.Cleanup(seldomCollected())
	var slips atomic.Int64
	needed := make([]atomic.Bool, len(harmless))
	t.Run("families", func(t *testing.T) {
		for _, f := range arch.Families() {
			t.Run(f.Name, func(t *testing.T) {
				t.Parallel()
				for _, s := range slipsOf(t, familyFile(t, f.Name), witnessesOf(t, f.Name)) {
					slips.Add(1)
					fate := s.fate(t)
					if fate == killed || fate == inert {
						continue
					}
					if i := s.harmless(f.Name); i >= 0 {
						needed[i].Store(true)
					} else {
						t.Errorf("%s: %s: %s", f.Name, s.what, fate)
					}
				}
			})
		}
	})
	t.Logf("%d slips", slips.Load())
	for i, h := range harmless {
		if !needed[i].Load() {
			t.Errorf("no slip of %s in %s needs to be excused: %s", h.slip, h.family, h.why)
		}
	}
}

// harmless are errors that change no function, with the reason. Families and errors are regular expressions.
var harmless = []struct{ family, slip, why string }{
	{".*", `^index (\w+_)?norm: sign always`,
		"a symmetry that no family lists: a norm's weight and bias, and what reads them, change signs"},
	{".*", `^index (kv|(\w+_)?head): sign always, on all its axes`,
		"all of a head's q and k, or v and o, change signs at once: its channels may do that anyway"},
	{"bert|roberta|vit", `pooler\.dense|mask_token`, "left over from training: no output shows it"},
	{".*", `^norm final: a layernorm, for rmsnorm|: norm <nil> for final$`,
		"softmax takes away whatever constant an untied head adds"},
	{".*", `(c_proj|o_proj|out_proj|fc2|dense|dense_4h_to_h)\.weight, when .*: softmax true`,
		"one constant on all channels of the residual stream is what LayerNorms subtract"},
	{"opt", `(q_proj|k_proj|v_proj|fc1)\.weight, when pre_norm: softmax true`,
		"a constant is free behind LayerNorms, those without weights among them"},
}

func (s slip) harmless(family string) int {
	for i, h := range harmless {
		if regexp.MustCompile("^("+h.family+")$").MatchString(family) && regexp.MustCompile(h.slip).MatchString(s.what) {
			return i
		}
	}
	return -1
}

// witness is a model for testing slips.
type witness struct {
	subject
	layout *arch.Layout
	// moving shows slips of axes and indices; shifting shows slips that only affect shift.
	moving   func() *moving
	shifting func() *shifting
}

func witnessesOf(t *testing.T, family string) (all []*witness) {
	for i, s := range subjectsOf(t, family) {
		f, err := arch.Detect(s.config)
		ok(t, err)
		l, err := f.Resolve(s.config, s.infos)
		ok(t, err)
		all = append(all, &witness{s, l, sync.OnceValue(func() *moving { return newMoving(t, s, l, uint64(i)) }),
			sync.OnceValue(func() *shifting { return newShifting(t, s) })})
	}
	return all
}

// moving is a model with one draw of its symmetries.
type moving struct {
	subject
	model   *weights.Model
	outputs [][]float64
	layout  *arch.Layout
	drawn   symmetrySet
	moved   map[string][]byte // all tensors after the draw
}

func newMoving(t *testing.T, s subject, l *arch.Layout, seed uint64) *moving {
	m := s.model(t)
	w := &moving{subject: s, model: m, outputs: s.outputs(t, m), layout: l}
	w.drawn = drawSymmetries(rand.New(rand.NewPCG(seed, 3)), l, symmetryNames)
	w.moved = moved(t, m, l, w.drawn)
	return w
}

// slip is a family's file with one change.
type slip struct {
	what string
	file file
	// witnesses are the models that the slip can affect.
	witnesses []*witness
	shifts    bool // it changes what feeds layers, or where they lead
}

// fate is the outcome of a slip.
type fate int

const (
	killed fate = iota // rejected, or found
	inert              // it means the same, or less, for every model
	unused             // no model has the tensor
	alive              // it means something else without an effect
)

func (f fate) String() string {
	return [...]string{"killed", "inert", "no model has this tensor", "nothing changes"}[f]
}

// fate tests a slip on its models.
func (s slip) fate(t *testing.T) fate {
	t.Helper()
	family := s.file.parse(t)
	switch {
	case family == nil:
		return killed
	case len(s.witnesses) == 0:
		return unused
	}
	same := true
	for _, w := range s.witnesses {
		l, err := family.Resolve(w.config, w.infos)
		if err != nil {
			return killed
		}
		if s.shifts {
			seen, more := w.shifting().sees(t, family)
			if seen {
				return killed
			}
			same = same && !more
			continue
		}
		seen, more := w.moving().sees(t, l)
		if seen {
			return killed
		}
		same = same && !more
	}
	if same {
		return inert
	}
	return alive
}

// sees reports whether another layout changes the outputs, and whether it changes any value at all.
func (w *moving) sees(t *testing.T, l *arch.Layout) (seen, more bool) {
	data := w.differs(t, l)
	if data == nil {
		return false, false
	}
	there := rewritten(t, w.model, func(x weights.Tensor) []byte { return data[x.Name] })
	d := apart(w.outputs, w.subject.outputs(t, there))
	return !(d <= sameOutputs) || !w.sameCopies(t, there), true
}

// differs returns the tensors under another layout; nil if they are equal.
func (w *moving) differs(t *testing.T, l *arch.Layout) map[string][]byte {
	for i, ix := range l.Indices {
		if i >= len(w.layout.Indices) || !alike(ix, w.layout.Indices[i]) {
			return moved(t, w.model, l, drawSymmetries(rand.New(rand.NewPCG(1, 4)), l, symmetryNames))
		}
	}
	changed := arch.Layout{Claims: map[string]*arch.Claim{}}
	for name, claim := range l.Claims {
		if fmt.Sprint(claim.Axes) != fmt.Sprint(w.layout.Claims[name].Axes) {
			changed.Claims[name] = claim
		}
	}
	data := moved(t, w.model, &changed, w.drawn)
	same := true
	for name := range w.moved {
		if changed.Claims[name] == nil {
			data[name] = w.moved[name]
		}
		same = same && bytes.Equal(data[name], w.moved[name])
	}
	if same {
		return nil
	}
	return data
}

func alike(a, b *arch.Index) bool {
	return a.Name == b.Name && a.Len == b.Len && a.Permute == b.Permute && a.Sign == b.Sign && a.Scale == b.Scale
}

// parse returns nil if the file is invalid.
func (f file) parse(t *testing.T) *arch.Family {
	text, err := json.Marshal(f)
	ok(t, err)
	family, _ := arch.Parse(text)
	return family
}

// misfits returns the models that are not of this family.
func (f file) misfits(t *testing.T, witnesses []*witness) (all []*witness) {
	family := f.parse(t)
	for _, w := range witnesses {
		if family == nil {
			return witnesses
		}
		if _, err := family.Resolve(w.config, w.infos); err != nil {
			all = append(all, w)
		}
	}
	return all
}

// lengths returns the length of each of the family's indices, in some model.
func lengths(witnesses []*witness) map[string]int {
	length := map[string]int{}
	for _, w := range witnesses {
		for _, ix := range w.layout.Indices {
			length[ix.Kind] = max(length[ix.Kind], ix.Len)
		}
	}
	return length
}

// slipsOf returns the slips of a file, on every axis and on every index.
func slipsOf(t *testing.T, f file, witnesses []*witness) (all []slip) {
	indices, length := map[string]object{}, lengths(witnesses)
	for _, ix := range f.list("indices") {
		indices[ix["name"].(string)] = ix
	}
	for i, tensor := range f.list("tensors") {
		axes, _ := tensor["axes"].([]any)
		var users []*witness
		for k, axis := range axes {
			with := func(expression string) file {
				changed := maps.Clone(tensor)
				changed["axes"] = slices.Replace(slices.Clone(axes), k, k+1, any(expression))
				return f.with("tensors", i, changed)
			}
			if k == 0 {
				users = with("999983").misfits(t, witnesses) // a length that no tensor has
			}
			for _, expression := range axisSlips(axis.(string), indices, length) {
				what := fmt.Sprintf("%s, when %v: axis %d: %q for %q", tensor["name"], tensor["when"], k, expression, axis)
				all = append(all, slip{what, with(expression), users, false})
			}
			if k == 0 && tensor["role"] == "linear" {
				all = append(all, feedSlips(f, i, users)...)
			}
		}
	}
	all = append(all, normSlips(f, witnesses)...)
	for i, ix := range f.list("indices") {
		for _, symmetry := range symmetryNames {
			if ix[symmetry] == "always" {
				continue
			}
			changed := maps.Clone(ix)
			changed[symmetry] = "always"
			slipped := f.with("indices", i, changed)
			what := fmt.Sprintf("index %s: %s always, for %v", ix["name"], symmetry, ix[symmetry])
			all = append(all, slip{what, slipped, witnesses, false})
			if ix["sign"] == nil && ix["scale"] == nil && symmetry != "permute" {
				for _, norms := range []bool{false, true} {
					what := fmt.Sprintf("index %s: %s always, on all its axes (norms': %v)", ix["name"], symmetry, norms)
					all = append(all, slip{what, slipped.marking(ix["name"].(string), norms), witnesses, false})
				}
			}
		}
	}
	return all
}

// with returns a file with another entry.
func (f file) with(list string, i int, entry object) file {
	f = maps.Clone(f)
	f[list] = slices.Replace(slices.Clone(f[list].([]any)), i, i+1, any(entry))
	return f
}

// marking returns a file in which all axes of an index have signs and scales: + for outputs, - for inputs. Norms are
// optional.
func (f file) marking(index string, norms bool) file {
	word := regexp.MustCompile(`\b` + index + `\b`)
	for i, tensor := range f.list("tensors") {
		axes, _ := tensor["axes"].([]any)
		if tensor["role"] == "norm" && !norms {
			continue
		}
		tensor, axes = maps.Clone(tensor), slices.Clone(axes)
		out, _ := tensor["out"].(float64)
		for k, axis := range axes {
			sign := "+"
			if tensor["role"] == "linear" && k != int(out) {
				sign = "-"
			}
			axes[k] = word.ReplaceAllString(axis.(string), sign+index)
		}
		tensor["axes"] = axes
		f = f.with("tensors", i, tensor)
	}
	return f
}

var axisToken = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9]*|[0-9]+|[-+|&()]`)

// axisSlips returns other expressions, most of them of the same length.
func axisSlips(axis string, indices map[string]object, length map[string]int) (slips []string) {
	tokens := axisToken.FindAllString(axis, -1)
	add := func(parts ...[]string) {
		if s := strings.Join(slices.Concat(parts...), " "); s != strings.Join(tokens, " ") && !slices.Contains(slips, s) {
			slips = append(slips, s)
		}
	}
	leaf := func(i int) bool { return i >= 0 && i < len(tokens) && !strings.Contains("+-|&()", tokens[i]) }
	for i, name := range tokens {
		// A leaf is tokens[from:i+1], including its sign.
		from := i
		if i > 0 && strings.Contains("+-", tokens[i-1]) {
			from--
		}
		if ix := indices[name]; ix != nil {
			add(tokens[:from], []string{strconv.Itoa(length[name])}, tokens[i+1:])
			marks := []string{"", "+", "-"}
			switch {
			case ix["sign"] == nil && ix["scale"] == nil:
				marks = nil
			case ix["scale"] == nil: // + and - are equal
				marks = []string{"", "+"}
				if from < i {
					marks = marks[:1]
				}
			}
			for _, mark := range marks {
				if mark == "" {
					add(tokens[:from], tokens[i:])
				} else {
					add(tokens[:from], []string{mark}, tokens[i:])
				}
			}
		}
		switch end := partEnd(tokens, i+1); {
		case leaf(i) && leaf(i+1): // nesting
			add(tokens[:from], tokens[i+1:i+2], tokens[from:i+1], tokens[i+2:])
		case leaf(i) && leaf(i+2) && strings.Contains("+-", tokens[i+1]):
			add(tokens[:from], tokens[i+1:i+3], tokens[from:i+1], tokens[i+3:])
		case leaf(i) && i+1 < len(tokens) && tokens[i+1] == "(" && tokens[end-1] == ")": // per head, or stacked
			inner := tokens[i+2 : end-1]
			add(tokens[:from], distributed(tokens[from:i+1], inner), tokens[end:])
		case name == "|":
			start := partStart(tokens, i)
			add(tokens[:start], tokens[i+1:end], []string{"|"}, tokens[start:i], tokens[end:])
			if start == 0 && leaf(0) && tokens[i+1] == tokens[0] { // stacked, or per head
				add(tokens[:1], []string{"("}, tokens[1:i], []string{"|"}, tokens[i+2:end], []string{")"}, tokens[end:])
			}
		case name == "&":
			start, last := riderStart(tokens, i), riderEnd(tokens, i+1)
			add(tokens[:start], tokens[i+1:])
			add(tokens[:i], tokens[last:])
		}
	}
	return slips
}

// distributed returns the concatenation of a leaf's products with each part: "a b | a c" for "a (b | c)".
func distributed(leaf, parts []string) (all []string) {
	all = slices.Clone(leaf)
	depth := 0
	for _, token := range parts {
		all = append(all, token)
		switch token {
		case "(":
			depth++
		case ")":
			depth--
		case "|":
			if depth == 0 {
				all = append(all, leaf...)
			}
		}
	}
	return all
}

// partEnd returns the end of the part of a concatenation that begins at i.
func partEnd(tokens []string, i int) int {
	for depth := 0; i < len(tokens); i++ {
		switch tokens[i] {
		case "(":
			depth++
		case ")":
			depth--
		case "|", "&":
			if depth == 0 {
				return i
			}
		}
		if depth < 0 {
			return i
		}
	}
	return i
}

// partStart returns the start of the part that ends before i.
func partStart(tokens []string, i int) int {
	for depth := 0; i > 0; i-- {
		switch tokens[i-1] {
		case ")":
			depth++
		case "(":
			depth--
		case "|", "&":
			if depth == 0 {
				return i
			}
		}
		if depth < 0 {
			return i
		}
	}
	return 0
}

func riderStart(tokens []string, i int) int {
	for ; i > 0 && tokens[i-1] != "&"; i-- {
	}
	return i
}

func riderEnd(tokens []string, i int) int {
	for ; i < len(tokens) && tokens[i] != "&"; i++ {
	}
	return i
}
