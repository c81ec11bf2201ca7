package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// Server is an OpenAI-compatible endpoint.
type Server struct {
	// Name is unique within a comparison.
	Name string `json:"name"`
	// URL is the API's address: http://127.0.0.1:8000, the same with /v1, or, for a server with chat completions only,
	// the full address of /v1/chat/completions. A fragment selects one of the server's models:
	// http://127.0.0.1:8000#llama. Default: the first model that the server lists.
	URL string `json:"url"`
}

// endpoint is a server during a comparison.
type endpoint struct {
	name   string
	base   string // address of the API, without a slash at the end
	model  string
	chat   bool
	extras Extras
	client *http.Client
	clock  power.Clock
	stall  time.Duration
	copy   int // number of earlier servers in the comparison with the same address
}

// newEndpoint reads a server's address.
func newEndpoint(s Server, o Options) (*endpoint, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("server %s: %q is not the address of an API: give an address such as http://127.0.0.1:8000/v1", s.Name, s.URL)
	}
	e := &endpoint{name: s.Name, model: u.Fragment, client: o.client, clock: o.clock, stall: o.Stall}
	path := strings.TrimRight(u.Path, "/")
	path, e.chat = strings.CutSuffix(path, "/chat/completions")
	path = strings.TrimSuffix(path, "/completions")
	if path == "" {
		path = "/v1"
	}
	e.base = u.Scheme + "://" + u.Host + path
	return e, nil
}

// answer is a complete or interrupted answer.
type answer struct {
	start    time.Duration
	arrivals []time.Duration // times at which parts of the text arrived
	prompt   int             // number of prompt tokens reported by the server; 0: unknown
	output   int
	finish   string
}

// StallError is the error for a server that sent no token, or did not list its models, for the given time.
type StallError struct {
	For     time.Duration
	listing bool // the server did not list its models
}

func (e StallError) Error() string {
	if e.listing {
		return fmt.Sprintf("no answer for %v", e.For)
	}
	return fmt.Sprintf("no token for %v", e.For)
}

// complete requests one answer and reads its stream. It calls arrived with the time of each part of the text. After an
// error it returns the answer so far.
func (e *endpoint) complete(ctx context.Context, q request, arrived func(at time.Duration)) (answer, error) {
	body, err := e.body(q)
	if err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(e.stall, func() { cancel(StallError{For: e.stall}) })
	defer stalled.Stop()
	a := answer{start: e.clock.Now()}
	path := "/completions"
	if e.chat {
		path = "/chat/completions"
	}
	response, err := e.do(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		return a, fmt.Errorf("the server does not stream: Content-Type %q: %s", kind, quoted(beginning(response.Body)))
	}
	err = e.read(response.Body, &a, q.tokens, func(at time.Duration) {
		stalled.Reset(e.stall)
		arrived(at)
	})
	return a, cause(ctx, err)
}

// read reads the events of an answer with at most most tokens.
func (e *endpoint) read(r io.Reader, a *answer, most int, arrived func(at time.Duration)) error {
	stream := newEvents(r)
	for {
		data, err := stream.next()
		now := e.clock.Now()
		switch {
		case err == io.EOF && a.finish != "":
			return nil // some servers do not send the last event
		case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("the server closed the connection after %d of %d tokens: look at the server's log", len(a.arrivals), most)
		case err != nil:
			return err
		case string(data) == "[DONE]":
			// The HTTP client reuses a connection only if the answer was read to its end.
			if _, err := io.CopyN(io.Discard, r, 1); err != nil && err != io.EOF {
				return fmt.Errorf("the server did not end the answer after its last event: %w", err)
			}
			return nil
		}
		c, err := parseChunk(data)
		if err != nil {
			return err
		}
		if c.Usage != nil {
			a.prompt, a.output = c.Usage.Prompt, c.Usage.Output
		}
		if finish := c.finish(); finish != "" {
			a.finish = finish
		}
		if c.text() {
			if len(a.arrivals) == most {
				return fmt.Errorf("the server sent more than the requested %d tokens: look at the server's log", most)
			}
			a.arrivals = append(a.arrivals, now)
			arrived(now)
		}
	}
}

// complaint returns an error if a complete answer does not match the request.
func (a *answer) complaint(want int) error {
	have := a.output
	if have == 0 {
		have = len(a.arrivals)
	}
	switch {
	case len(a.arrivals) == 0:
		return errors.New("the answer has no text: look at the server's log")
	case have < want && a.finish == "stop":
		return fmt.Errorf("an answer has %d tokens instead of %d, because the model ended it (finish_reason \"stop\"): ask for fewer output tokens, or give prompts with longer answers", have, want)
	case have != want:
		return fmt.Errorf("an answer has %d tokens instead of %d (finish_reason %s): look at the server's log, or ask for fewer output tokens", have, want, quoted([]byte(a.finish)))
	}
	return nil
}

// StatusError is the error for an answer with a status other than 200.
type StatusError struct {
	Status int
	Text   string // start of the answer
}

func (e StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("status %d %s", e.Status, http.StatusText(e.Status))) + ": " + e.Text
	if e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden {
		text += ": servers with an API key are not supported: start the server without a key"
	}
	return text
}

// do sends a request. The caller closes the answer's body.
func (e *endpoint) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, method, e.base+path, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := e.client.Do(q)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err // the caller's message contains the address
		}
		return nil, cause(ctx, advise(err))
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, StatusError{response.StatusCode, quoted(errorText(beginning(response.Body)))}
	}
	return response, nil
}

// cause returns the reason why this package cancelled a request, in place of the request's error.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// advise adds advice to connection errors.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: start the server first, or check its port", err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("the server closed the connection (%w): look at the server's log", err)
	}
	return err
}

// beginning returns the first kilobytes of an answer, for messages.
func beginning(r io.Reader) []byte {
	data, _ := io.ReadAll(io.LimitReader(r, 4<<10))
	return data
}

// findModel asks the server for its models, unless the address selects one.
func (e *endpoint) findModel(ctx context.Context) error {
	if e.model != "" {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.stall, StallError{e.stall, true})
	defer cancel()
	response, err := e.do(ctx, http.MethodGet, "/models", nil)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, longestEvent))
	if err != nil {
		return fmt.Errorf("models: %w", cause(ctx, err))
	}
	var list struct{ Data []struct{ ID string } }
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("the server's answer is not a list of models in JSON: %s", quoted(data))
	}
	if len(list.Data) == 0 || list.Data[0].ID == "" {
		return errors.New("the server lists no models: add a model to the address, as in http://127.0.0.1:8000/v1#llama")
	}
	e.model = list.Data[0].ID
	return nil
}

// probe finds the model and the extras that the server accepts, and checks one answer.
func (e *endpoint) probe(ctx context.Context, q request) (answer, error) {
	if err := e.findModel(ctx); err != nil {
		return answer{}, err
	}
	if e.chat && q.prompt.Tokens != nil {
		return answer{}, errors.New("chat completions do not accept token IDs: give prompts as text")
	}
	var a answer
	var err error
	for _, e.extras = range attempts {
		e.client.CloseIdleConnections() // a server may close the connection when it rejects a request
		a, err = e.complete(ctx, q, func(time.Duration) {})
		var status StatusError
		if !errors.As(err, &status) || status.Status != http.StatusBadRequest && status.Status != http.StatusUnprocessableEntity {
			break
		}
	}
	var status StatusError
	if errors.As(err, &status) && status.Status == http.StatusNotFound && !e.chat {
		err = fmt.Errorf("%w; if the server offers only chat completions, give the full address, which ends in /v1/chat/completions", err)
	}
	if err != nil {
		return a, err
	}
	return a, a.complaint(q.tokens)
}
