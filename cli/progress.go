package cli

import (
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/lowtoggle/lowtoggle/transform"
)

// progress draws what is being done on standard error, where that is a terminal: one stage after the other,
// and on several cards one line for each.
type progress struct {
	mu    sync.Mutex
	pool  *mpb.Progress // nil: nothing is drawn
	lines map[string]*line
}

// line is a stage that is under way.
type line struct {
	stage string
	bar   *mpb.Bar
}

// startProgress draws nothing where standard error is no terminal or --quiet is given.
func startProgress(c *cli.Context) *progress {
	f, ok := c.App.ErrWriter.(*os.File)
	if !ok || c.Bool("quiet") || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return drawProgress(f)
}

func drawProgress(w io.Writer) *progress {
	return &progress{pool: mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(100*time.Millisecond)), lines: map[string]*line{}}
}

// newProgress is for what does one thing at a time: the callback to hand to the libraries, and what to call at
// the end.
func newProgress(c *cli.Context) (event func(transform.Event), end func()) {
	p := startProgress(c)
	return p.on(""), p.end
}

// on is the callback for one of several that work at the same time. A stage ends when its next one begins; a total
// of 0 means that nobody knows how much there is to do.
func (p *progress) on(name string) func(transform.Event) {
	if p.pool == nil {
		return func(transform.Event) {}
	}
	return func(e transform.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		l := p.lines[name]
		if l == nil || l.stage != e.Stage {
			if l != nil {
				l.bar.Abort(true)
			}
			if l = p.begin(name, e); l == nil {
				return
			}
		}
		if e.Done > l.bar.Current() { // events of several goroutines may arrive out of order
			l.bar.SetCurrent(e.Done)
		}
	}
}

// begin a stage; nil where the terminal is gone.
func (p *progress) begin(name string, e transform.Event) *line {
	title := strings.TrimPrefix(name+" "+e.Stage, " ")
	filler, total := mpb.SpinnerStyle().PositionLeft().Build(), int64(1)
	after := []decor.Decorator{decor.Elapsed(decor.ET_STYLE_GO)}
	if e.Total > 0 {
		filler, total = mpb.BarStyle().Build(), e.Total
		after = []decor.Decorator{decor.Percentage(), decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO)}
	}
	bar, err := p.pool.Add(total, filler, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(title, decor.WC{W: 9, C: decor.DindentRight})), mpb.AppendDecorators(after...))
	if err != nil {
		delete(p.lines, name)
		return nil
	}
	p.lines[name] = &line{e.Stage, bar}
	return p.lines[name]
}

func (p *progress) end() {
	if p.pool == nil {
		return
	}
	p.mu.Lock()
	for _, l := range p.lines {
		l.bar.Abort(true)
	}
	p.mu.Unlock()
	p.pool.Wait()
}
