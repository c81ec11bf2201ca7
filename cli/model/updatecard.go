package model

import (
	"context"
	"path/filepath"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

var updateCardFlag = &cli.BoolFlag{Name: "update-card", Usage: "write the measured perplexity to OUT/README.md, its model card", DisableDefaultText: true}

// cardUpdate writes measured perplexities to the model cards of conversions.
type cardUpdate struct {
	cards   []*transform.MeasuredCard
	command string
	version string
}

// openCards reads the cards of conversions of src, so that errors show before anything is measured. It returns nil without
// --update-card. file is the token file.
func openCards(c *cli.Context, src *weights.Model, converted []*weights.Model, file string) (*cardUpdate, error) {
	if !c.Bool(updateCardFlag.Name) {
		return nil, nil
	}
	words := []string{c.Command.Name, "MODEL", "OUT", "--tokens", filepath.Base(filepath.ToSlash(file))}
	if c.IsSet("sequences") {
		words = append(words, "--sequences", strconv.Itoa(c.Int("sequences")))
	}
	if c.IsSet("device") && c.Command.Name == "eval" {
		words = append(words, "--device", c.String("device"))
	}
	if path := c.String("arch"); path != "" {
		words = append(words, "--arch", filepath.Base(path))
	}
	u := &cardUpdate{command: term.CommandLine(append(words, "--"+updateCardFlag.Name)...), version: c.App.Version}
	for _, out := range converted {
		card, err := transform.OpenCard(src, out, storeOf(out.Dir))
		if err != nil {
			return nil, err
		}
		u.cards = append(u.cards, card)
	}
	return u, nil
}

// checkUpdateCard checks --update-card against the other arguments. conversions is the number of models after MODEL.
func checkUpdateCard(c *cli.Context, conversions int) error {
	if !c.Bool(updateCardFlag.Name) {
		return nil
	}
	switch part := c.String("part"); {
	case conversions == 0:
		return exit.Usagef("--%s: name a conversion OUT after MODEL; the perplexity is written to OUT/README.md", updateCardFlag.Name)
	case part != "" && part != tokens.Evaluation:
		return exit.Usagef("--%s: give --part %s, because the conversion may have used the other tokens", updateCardFlag.Name, tokens.Evaluation)
	case c.Command.Name == "verify" && !c.IsSet("tokens"):
		return exit.Usagef("--%s: also give --tokens FILE to measure the perplexity", updateCardFlag.Name)
	}
	return nil
}

// write writes the comparison of MODEL with the conversion number i, from 0, and returns the card's path. Without --update-card it
// returns an empty string.
func (u *cardUpdate) write(ctx context.Context, i int, loss evaluate.Comparison) (path string, err error) {
	if u == nil {
		return "", nil
	}
	return u.cards[i].Path(), u.cards[i].Write(ctx, transform.Measurement{Comparison: loss, Time: time.Now(), Command: u.command, Version: u.version})
}

// cardRemark is the report's remark about a written card.
func cardRemark(path string) string {
	return path + " now has the measured perplexity, under the heading Accuracy"
}
