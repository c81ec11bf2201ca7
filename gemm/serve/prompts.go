package serve

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// Prompt is a text or a list of token IDs. In JSON it is a string or an array of numbers.
type Prompt struct {
	Text   string
	Tokens []int // nil: Text is the prompt
}

// MarshalJSON writes a string or an array.
func (p Prompt) MarshalJSON() ([]byte, error) {
	if p.Tokens != nil {
		return json.Marshal(p.Tokens)
	}
	return json.Marshal(p.Text)
}

// UnmarshalJSON reads a string or an array of token IDs.
func (p *Prompt) UnmarshalJSON(data []byte) error {
	*p = Prompt{}
	var err error
	if len(data) > 0 && data[0] == '[' {
		err = json.Unmarshal(data, &p.Tokens)
	} else {
		err = json.Unmarshal(data, &p.Text)
	}
	if err != nil {
		return errors.New("a prompt must be a string or a list of token IDs")
	}
	for _, id := range p.Tokens {
		if id < 0 {
			return fmt.Errorf("token ID %d: give a number of at least 0", id)
		}
	}
	if p.Text == "" && len(p.Tokens) == 0 {
		return errors.New("the prompt is empty")
	}
	return nil
}

// longestPrompt is the largest size of a prompt's line, in bytes.
const longestPrompt = 16 << 20

// ReadPrompts reads one prompt per line and skips blank lines. If the first prompt begins with a brace, every line is a
// JSON object with a field "prompt", which is a string or a list of token IDs.
func ReadPrompts(r io.Reader) ([]Prompt, error) {
	if r == nil {
		return nil, errors.New("ReadPrompts needs a reader")
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestPrompt)
	var list []Prompt
	objects := false
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSuffix(strings.TrimPrefix(lines.Text(), "\ufeff"), "\r")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("line %d is not UTF-8", n)
		}
		if list == nil {
			objects = text[0] == '{'
		}
		p := Prompt{Text: text}
		if objects {
			var line struct{ Prompt *Prompt }
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			if line.Prompt == nil {
				return nil, fmt.Errorf(`line %d has no field "prompt"`, n)
			}
			p = *line.Prompt
		}
		list = append(list, p)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d has more than %d bytes", n+1, longestPrompt)
	case err != nil:
		return nil, err
	case list == nil:
		return nil, errors.New("the file has no prompts: write one prompt per line")
	}
	return list, nil
}

// Workload is the load that every server gets. The zero value of a field means its default.
type Workload struct {
	// Concurrency is the number of requests in flight. Default 16.
	Concurrency int `json:"concurrency"`
	// OutputTokens is the number of tokens of every answer. Default 128.
	OutputTokens int `json:"output_tokens"`
	// Prompts are used in turn. Default: random token IDs, different for every request.
	Prompts []Prompt `json:"-"`
	// PromptTokens is the number of random token IDs in a prompt. It is not used if Prompts is given. Default 512.
	PromptTokens int `json:"prompt_tokens,omitempty"`
	// Vocab is the upper limit of random token IDs, exclusive. Default 256, which is within every vocabulary. IDs start
	// at 3, because the IDs below are control tokens in many vocabularies.
	Vocab int `json:"vocab,omitempty"`
	// Source is the name of the prompts in the result. Default: none.
	Source string `json:"prompts,omitempty"`
}

// firstID is the lowest token ID of random prompts.
const firstID = 3

func (w Workload) withDefaults() Workload {
	fill(&w.Concurrency, 16)
	fill(&w.OutputTokens, 128)
	if w.Prompts != nil {
		w.PromptTokens, w.Vocab = 0, 0
		return w
	}
	fill(&w.PromptTokens, 512)
	fill(&w.Vocab, 256)
	return w
}

func (w Workload) validate() error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	const most = 1 << 20
	check(w.Concurrency > 0 && w.Concurrency <= 4096, "concurrency %d: give 1 to 4096", w.Concurrency)
	check(w.OutputTokens > 1 && w.OutputTokens <= most, "output tokens %d: give 2 to %d", w.OutputTokens, most)
	if w.Prompts == nil {
		check(w.PromptTokens > 0 && w.PromptTokens <= most, "prompt tokens %d: give 1 to %d", w.PromptTokens, most)
		check(w.Vocab > firstID && w.Vocab <= 1<<31-1, "vocabulary %d: give more than %d", w.Vocab, firstID)
	}
	return errors.Join(wrong...)
}

// prompt returns the prompt of a request in a pass. It is the same for every server.
func (w Workload) prompt(seed uint64, pass, request int) Prompt {
	if n := len(w.Prompts); n > 0 {
		first := rand.New(rand.NewPCG(seed, uint64(pass))).IntN(n)
		return w.Prompts[(first+request)%n]
	}
	rng := rand.New(rand.NewPCG(seed, uint64(pass)<<32|uint64(request)))
	ids := make([]int, w.PromptTokens)
	for i := range ids {
		ids[i] = firstID + rng.IntN(w.Vocab-firstID)
	}
	return Prompt{Tokens: ids}
}

func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
