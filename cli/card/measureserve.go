package card

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cli/flag"
	"github.com/lowtoggle/lowtoggle/cli/term"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
)

const serverCategory = "Servers (instead of products):"

// serveFlags describe the servers and the load.
var serveFlags = []cli.Flag{
	&cli.StringSliceFlag{Name: "serve", Category: serverCategory, Usage: "`NAME=URL` of a server; the first is the baseline"},
	&cli.StringFlag{Name: "null", Category: serverCategory, Usage: "`NAME=URL` of a server with a copy of the baseline"},
	&cli.IntFlag{Name: "concurrency", Category: serverCategory, Usage: "`N` requests in flight", DefaultText: "16"},
	&cli.StringFlag{Name: "prompts", Category: serverCategory, Usage: "`FILE` of prompts, one a line", DefaultText: "random token ids"},
	&cli.IntFlag{Name: "prompt-tokens", Category: serverCategory, Usage: "`N` random token ids in a prompt", DefaultText: "512"},
	&cli.IntFlag{Name: "vocab", Category: serverCategory, Usage: "draw token ids below `N`", DefaultText: "256"},
	&cli.IntFlag{Name: "output-tokens", Category: serverCategory, Usage: "`N` tokens in every answer", DefaultText: "128"},
	&cli.DurationFlag{Name: "stall", Category: serverCategory, Usage: "longest `TIME` without a token", DefaultText: "1m0s"},
}

// checkServeFlags returns an error for flags that have no meaning with --serve, and for flags that need --serve.
func checkServeFlags(c *cli.Context) error {
	serving := c.IsSet("serve")
	refused, with := serveFlags[1:], "needs --serve NAME=URL"
	if serving {
		refused, with = slices.Concat(productFlags, []cli.Flag{againstFlag, benchFlag, dutyFlag, collectiveFlag, flag.Arch}), "and --serve exclude each other: leave one of them out"
	}
	for _, f := range refused {
		if name := f.Names()[0]; c.IsSet(name) {
			return exit.Usagef("--%s %s", name, with)
		}
	}
	return nil
}

// measureServers is measure --serve.
func measureServers(c *cli.Context) (err error) {
	servers, err := parseServers(c)
	if err != nil {
		return err
	}
	o, err := serveOptions(c)
	if err != nil {
		return err
	}
	cards, err := openSensors(c.String("device"), o.Seed)
	if err != nil {
		return err
	}
	for _, card := range cards {
		defer exit.CloseAll(&err, card.Close)
	}
	event, end := term.Progress(c)
	o.Progress = event
	r, err := serve.Compare(c.Context, cards, servers, o)
	end()
	if _, stalled := errors.AsType[serve.StallError](err); stalled {
		err = fmt.Errorf("%w: look at the server's log, or give a longer --stall", err)
	}
	if err = interrupted(err, r != nil); r == nil {
		return err
	}
	if failed := writeServed(c, r); err == nil {
		err = failed
	}
	if err == nil && (!r.Valid || c.IsSet("precision") && r.Stopped != power.StoppedPrecision) {
		return exit.ErrShort
	}
	return err
}

func writeServed(c *cli.Context, r *serve.Result) error {
	var err error
	switch {
	case c.Bool("json"):
		err = term.JSON(c.App.Writer, r)
	case c.Bool("csv"):
		err = writeCSV(c.App.Writer, servedRows(r))
	default:
		serveReport{r}.print(c.App.Writer)
	}
	if err != nil || c.String("output") == "" {
		return err
	}
	return servedOutput(c, r)
}

// parseServers reads --serve and --null.
func parseServers(c *cli.Context) (s serve.Servers, err error) {
	for i, text := range c.StringSlice("serve") {
		one, err := parseServer("serve", text)
		if err != nil {
			return s, err
		}
		if i == 0 {
			s.Baseline = one
		} else {
			s.Variants = append(s.Variants, one)
		}
	}
	if text := c.String("null"); text != "" {
		one, err := parseServer("null", text)
		if err != nil {
			return s, err
		}
		s.Null = &one
	}
	if err := s.Validate(); err != nil {
		return s, exit.Usage(err)
	}
	return s, nil
}

func parseServer(name, text string) (serve.Server, error) {
	label, url, ok := strings.Cut(text, "=")
	if label = strings.TrimSpace(label); !ok || label == "" || url == "" || strings.Contains(label, "/") {
		return serve.Server{}, exit.Usagef("--%s %s: give a name and an address, as in before=http://127.0.0.1:8000/v1", name, text)
	}
	return serve.Server{Name: label, URL: url}, nil
}

// serveOptions reads the flags that describe the load and the measurement.
func serveOptions(c *cli.Context) (o serve.Options, err error) {
	o = serve.Options{
		Workload: serve.Workload{Concurrency: c.Int("concurrency"), PromptTokens: c.Int("prompt-tokens"), OutputTokens: c.Int("output-tokens"), Vocab: c.Int("vocab")},
		Window:   c.Duration("window"), Stall: c.Duration("stall"), Seed: c.Uint64("seed"),
		Date: time.Now(), Command: term.CommandLine(os.Args[1:]...),
	}
	for _, name := range []string{"concurrency", "prompt-tokens", "output-tokens", "vocab"} {
		if c.IsSet(name) && c.Int(name) < 1 {
			return o, exit.Usagef("--%s %d: give a number of at least 1", name, c.Int(name))
		}
	}
	if c.IsSet("window") && o.Window < time.Second {
		return o, exit.Usagef("--window %v: give a time such as 10s, and at least 1s", o.Window)
	}
	if c.IsSet("stall") && o.Stall <= 0 {
		return o, exit.Usagef("--stall %v: give a time such as 60s", o.Stall)
	}
	if c.IsSet("time") {
		if o.Time = c.Duration("time"); o.Time <= 0 {
			return o, exit.Usagef("--time %v: give a time such as 10m", o.Time)
		}
	}
	if o.Precision, err = parseShare(c.String("precision"), usualPrecision); err != nil {
		return o, exit.Usage(fmt.Errorf("--precision: %w", err))
	}
	if path := c.String("prompts"); path != "" {
		if c.IsSet("prompt-tokens") || c.IsSet("vocab") {
			return o, exit.Usagef("--prompts excludes --prompt-tokens and --vocab, which describe random prompts: leave --prompt-tokens and --vocab out")
		}
		if o.Workload.Prompts, err = readPrompts(path); err != nil {
			return o, err
		}
		o.Workload.Source = path
	}
	if err := o.Validate(); err != nil {
		return o, exit.Usage(err)
	}
	return o, nil
}

func readPrompts(path string) ([]serve.Prompt, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--prompts %s: there is no such file: name one with a prompt on every line", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("--prompts %s: is a folder: name a file with a prompt on every line", path)
	}
	list, err := serve.ReadPrompts(f)
	if err != nil {
		return nil, fmt.Errorf("--prompts: %s: %w", path, err)
	}
	return list, nil
}

// simulatedServing is the constant power of a simulated card under --serve, in watts.
const simulatedServing = 400

// openSensors opens the power sensors of all cards in --device, numbered like the driver's. CUDA is not needed,
// because this process runs nothing on the cards. A simulated card has constant power.
func openSensors(text string, seed uint64) (cards []power.Card, err error) {
	list, err := parseDevices(text)
	if err != nil {
		return nil, err
	}
	for i, d := range list {
		if d.state != "" {
			return nil, exit.Usagef("--device %s: a simulated card with a file cannot be combined with --serve", text)
		}
		if d.index < 0 {
			o := power.DefaultSim()
			o.Seed = seed + uint64(i) + 1
			card := power.NewLiveSim(o)
			card.Draw(simulatedServing)
			cards = append(cards, card)
			continue
		}
		card, err := power.Open(strconv.Itoa(d.index))
		if err != nil {
			for _, one := range cards {
				err = errors.Join(err, one.Close())
			}
			return nil, simulatedInstead(err)
		}
		cards = append(cards, card)
	}
	return cards, nil
}
