package transform

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/internal/atomicfile"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/card"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/weights"
)

// ErrCard marks a model card that cannot take a measured perplexity.
var ErrCard = errors.New("its model card cannot be updated")

// accuracyHeading is the heading of the card's lines about accuracy.
const accuracyHeading = "Accuracy"

// MeasuredCard is the model card of a conversion, to which a measured perplexity is written.
type MeasuredCard struct {
	out      *weights.Model
	store    apply.Store
	text     []byte
	manifest *plan.Manifest
	recorded bool // the manifest has the card's digest
}

// OpenCard reads the model card of out, a conversion of src. store is out's object store; nil if out is on a disk. The error is
// an [ErrCard] if out is not a conversion of src, or if its card has no section that a conversion wrote. Nothing is written.
func OpenCard(src, out *weights.Model, store apply.Store) (*MeasuredCard, error) {
	if err := errors.Join(src.Usable(), out.Usable()); err != nil {
		return nil, err
	}
	wrong := func(format string, args ...any) error {
		return weights.FileErrorf(out.Dir, "%w: %w", ErrCard, fmt.Errorf(format, args...))
	}
	if out.Single {
		return nil, wrong("%s is a single file: name the folder of the conversion", filepath.Base(out.Shards[0].Path))
	}
	man, err := plan.ManifestOf(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("it has no %s: name the folder that lowtoggle convert wrote", plan.ManifestName)
	case err != nil:
		return nil, err
	case man.Plan == nil || man.Plan.CheckModel(src) != nil:
		return nil, wrong("it is not a conversion of %s: give the model that was converted", src.Dir)
	}
	c := &MeasuredCard{out: out, store: store, manifest: man}
	c.text, err = out.ReadFile(card.Name, bounded.Config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, wrong("it has no %s: convert again, into a new folder, to get one", card.Name)
	case err != nil:
		return nil, err
	}
	if _, ok := card.Replace(c.text, accuracyHeading, ""); !ok {
		return nil, wrong("%s has no section with one heading \"### %s\" between lowtoggle's comments: convert again, into a new folder, to get one", card.Name, accuracyHeading)
	}
	if c.recorded, err = c.fromConversion(src); err != nil {
		return nil, err
	}
	if store == nil {
		for _, name := range []string{card.Name, plan.ManifestName} {
			if err := atomicfile.Check(filepath.Join(out.Dir, name)); err != nil {
				return nil, wrong("%s cannot be written (%w): change the permissions", name, err)
			}
		}
	}
	return c, nil
}

// fromConversion reports whether the card has the manifest's digest, or differs from src's card only in the parts that lowtoggle
// writes. The latter holds if an earlier update was killed before it wrote the manifest.
func (c *MeasuredCard) fromConversion(src *weights.Model) (bool, error) {
	i := slices.IndexFunc(c.manifest.Files, func(f plan.File) bool { return f.Path == card.Name })
	if i < 0 {
		return false, nil
	}
	if c.manifest.Files[i].SHA256 == digestOf(c.text) {
		return true, nil
	}
	source, err := src.ReadFile(card.Name, bounded.Config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return bytes.Equal(card.Kept(source), card.Kept(c.text)), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Path returns the path or URL of the card.
func (c *MeasuredCard) Path() string { return c.out.Path(card.Name) }

// Measurement is a measured perplexity for a model card.
type Measurement struct {
	evaluate.Comparison
	Time    time.Time
	Command string // command that measured it
	Version string // version of the program
}

// Write replaces the card's lines about accuracy, and the card's digest in the manifest. All other bytes stay. The manifest keeps
// its digest if the user has edited the card. Each file is replaced whole or not at all. If the card was written and
// the manifest was not, a second call completes it.
func (c *MeasuredCard) Write(ctx context.Context, m Measurement) error {
	if ratio, _, _ := m.PerplexityRatio(); math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return weights.FileErrorf(c.out.Dir, "%w: the change of perplexity is not finite: check the weights with lowtoggle verify", ErrCard)
	}
	text, _ := card.Replace(c.text, accuracyHeading, m.text(c.manifest.Plan))
	if err := c.write(ctx, card.Name, text); err != nil {
		return err
	}
	c.text = text
	if !c.recorded {
		return nil
	}
	man := *c.manifest
	man.Files = slices.Clone(man.Files)
	for i, f := range man.Files {
		if f.Path == card.Name {
			man.Files[i] = plan.File{Path: f.Path, Size: int64(len(text)), SHA256: digestOf(text)}
		}
	}
	js, err := man.Encode()
	if err != nil {
		return err
	}
	return c.write(ctx, plan.ManifestName, js)
}

func (c *MeasuredCard) write(ctx context.Context, name string, data []byte) error {
	if c.store != nil {
		return c.store.Write(ctx, name, data)
	}
	return atomicfile.Write(filepath.Join(c.out.Dir, name), data)
}

// text is the lines about accuracy.
func (m Measurement) text(p *plan.Plan) string {
	file := inCode(path.Base(filepath.ToSlash(m.Tokens.File)))
	text := fmt.Sprintf("Measured on %s on %d %s tokens of `%s`: %s.", m.Time.UTC().Format(time.DateOnly), m.Tokens.Predicted(), m.Tokens.Purpose, file, changeText(&m.Comparison))
	if planned, _ := plannedAccuracy(p); planned != "" {
		text += " " + planned
	}
	return text + fmt.Sprintf("\n\nCommand: `%s` (%s).", inCode(m.Command), strings.TrimSpace("lowtoggle "+m.Version))
}

// inCode makes a text safe between backquotes of a card's section.
func inCode(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("`<>", r) {
			return '_'
		}
		return r
	}, text)
}
