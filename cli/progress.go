package cli

import (
	"os"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/lowtoggle/lowtoggle/transform"
)

// progress draws one bar per stage on standard error, where that is a terminal.
type progress struct {
	mu   sync.Mutex
	pool *mpb.Progress
	bars map[string]*mpb.Bar
}

// newProgress returns the callback to hand to the libraries, and what to call at the end. Both do
// nothing where standard error is no terminal or --quiet is given.
func newProgress(c *cli.Context) (func(transform.Event), func()) {
	f, ok := c.App.ErrWriter.(*os.File)
	if !ok || c.Bool("quiet") || !term.IsTerminal(int(f.Fd())) {
		return func(transform.Event) {}, func() {}
	}
	p := &progress{pool: mpb.New(mpb.WithOutput(f), mpb.WithRefreshRate(100*time.Millisecond)), bars: map[string]*mpb.Bar{}}
	return p.event, p.end
}

func (p *progress) event(e transform.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	bar := p.bars[e.Stage]
	if bar == nil {
		var err error
		bar, err = p.pool.Add(max(1, e.Total), mpb.BarStyle().Build(), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(e.Stage, decor.WC{W: 9, C: decor.DindentRight})),
			mpb.AppendDecorators(decor.Percentage(), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)))
		if err != nil { // the terminal is gone
			return
		}
		p.bars[e.Stage] = bar
	}
	if e.Done > bar.Current() { // events of several goroutines may arrive out of order
		bar.SetCurrent(e.Done)
	}
}

func (p *progress) end() {
	p.mu.Lock()
	for _, b := range p.bars {
		b.Abort(true)
	}
	p.mu.Unlock()
	p.pool.Wait()
}
