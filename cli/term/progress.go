package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	xterm "golang.org/x/term"

	"github.com/lowtoggle/lowtoggle/internal/printable"
	"github.com/lowtoggle/lowtoggle/internal/progress"
)

// Bars draws progress bars on standard error, one line for each task. A task may be the work on one card. A line shows
// the current stage of its task.
type Bars struct {
	mu    sync.Mutex
	pool  *mpb.Progress // nil: no bars are drawn
	log   *log          // nil: no log is written
	lines map[string]*line
}

// line is the current stage of a task.
type line struct {
	stage string
	bar   *mpb.Bar
}

// NewBars returns bars for a command. If the command has a log, the bars write to the log and draw nothing. If
// standard error is not a terminal, and with --quiet, they draw nothing.
func NewBars(c *cli.Context) *Bars {
	if l, ok := c.App.Metadata[logKey].(*log); ok {
		return &Bars{log: l}
	}
	if f := terminal(c); f != nil && !c.Bool("quiet") && c.String("log") != "none" {
		return draw(f)
	}
	return &Bars{}
}

// terminal returns standard error if it is a terminal, and nil otherwise.
func terminal(c *cli.Context) *os.File {
	if f, ok := unwrapped(c.App.ErrWriter).(*os.File); ok && xterm.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// unwrapped returns the writer under an escaping writer.
func unwrapped(w io.Writer) io.Writer {
	if e, ok := w.(*printable.Writer); ok {
		return e.Unwrap()
	}
	return w
}

func draw(w io.Writer) *Bars {
	return &Bars{pool: mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(100*time.Millisecond)), lines: map[string]*line{}}
}

// Progress is for a command with a single task. event is the callback for a library. The command must call end when
// the task is done.
func Progress(c *cli.Context) (event func(progress.Event), end func()) {
	p := NewBars(c)
	return p.On(""), p.End
}

// On returns the callback for the task called name. Tasks may report from several goroutines. A stage ends when the
// task's next stage begins. A total of 0 means that the amount of work is unknown.
func (p *Bars) On(name string) func(progress.Event) {
	if p.log != nil {
		return p.log.on(name)
	}
	if p.pool == nil {
		return func(progress.Event) {}
	}
	return func(e progress.Event) {
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

// begin starts a stage. It returns nil if the terminal was closed.
func (p *Bars) begin(name string, e progress.Event) *line {
	title := printable.Quote(strings.TrimPrefix(name+" "+e.Stage, " "))
	if e.Stages > 0 {
		title += fmt.Sprintf(" (stage %d of %d)", e.Number, e.Stages)
	}
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

// End removes all bars.
func (p *Bars) End() {
	if p.log != nil {
		p.log.clear()
	}
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
